// SPDX-License-Identifier: Apache-2.0
#include "host/device_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "control/command_check.hpp"
#include "host/device_triggers.hpp"
#include "host/resident_block.hpp"
#include "host/world/engines.hpp"
#include "host/world/part.hpp"

namespace beeline {

DeviceEngine::DeviceEngine(Team& team, CommandRing* rings, std::uint32_t queues)
    : team_(team), client_(world_part<Engines>(team.world()).client()), worker_(make_worker(client_)),
      refusals_(world_part<Engines>(team.world()).device_refusals()), rings_(rings), queues_(queues),
      served_(team, queues), pieces_(team), forwarded_(team, queues, Heap::pinned) {
  open_carried();
  grid_.emplace(team, LeasedGrid::Work{.name = "device engine (1 block)",
                                       .room = room_of_block<ServiceKernel, Service>(team.world()),
                                       .start = [this](Stream& stream, const Lease& lease) { start(stream, lease); },
                                       .after =
                                           [this] {
                                             answer_handed();
                                             for (const auto& carried : carried_) carried->give_up_overdue();
                                           },
                                       .between =
                                           [this] {
                                             if (DeviceTriggers* const triggers = triggers_) triggers->look();
                                           }});
}

/// Refusals of these queues that were not reported are dropped.
DeviceEngine::~DeviceEngine() {
  grid_.reset();
  for (std::uint32_t i = 0; i < queues_; ++i) refusals_.forget(&rings_[i]);
}

void DeviceEngine::start(Stream& stream, const Lease& lease) {
  pieces_.show(stream);
  const Service service{.rings = rings_,
                        .served = served_.data(),
                        .forwarded = forwarded_.data(),
                        .pieces = pieces_.data(),
                        .queues = queues_,
                        .piece_count = pieces_.count(),
                        .ranks = static_cast<std::uint32_t>(client_.ranks),
                        .lease = lease,
                        .triggers = triggers_ != nullptr ? triggers_.load()->show() : TriggerLists{},
                        .carried = carried_rings_ ? carried_rings_->data() : nullptr,
                        .is_remote = is_remote_ ? is_remote_->data() : nullptr};
  launch(team_.world(), {.threads = engine_block_threads, .stream = &stream, .name = "device engine"}, ServiceKernel{},
         service);
}

void DeviceEngine::answer_handed() {
  for (std::uint32_t i = 0; i < queues_; ++i)
    if (detail::load_acquired(forwarded_.data()[i].number) != forwarded_.data()[i].answered) answer(i);
}

void DeviceEngine::answer(std::uint32_t queue) {
  ForwardedCommands& forwarded = forwarded_.data()[queue];
  std::uint64_t next = forwarded.answered + 1, refused = 0;
  for (; next <= forwarded.number && refused == 0; ++next) {
    const Command& command = forwarded.cell(next);
    const char* const reason = do_command(command);
    if (reason == nullptr) continue;
    note_refusal(queue, command, reason);
    refused = forwarded.number - next + 1;
  }
  detail::SystemAtomic<std::uint64_t>(forwarded.refused).store(refused, std::memory_order_release);
  detail::SystemAtomic<std::uint64_t>(forwarded.answered).store(forwarded.number, std::memory_order_release);
}

void DeviceEngine::note_refusal(std::uint32_t queue, const Command& command, const char* reason, bool is_reported) {
  const std::string text = refusal_of(client_.rank, command, reason);
  log(LogLevel::error, text, client_.rank);
  client_.note_refusal(text);
  refusals_.add(&rings_[queue], text, is_reported);
}

void DeviceEngine::open_carried() {
  if (client_.network == nullptr) return;
  carried_rings_.emplace(team_, queues_, Heap::pinned);
  std::vector<std::uint8_t> remote;
  for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(client_.ranks); ++rank)
    remote.push_back(client_.is_remote(rank) ? 1 : 0);
  is_remote_.emplace(team_, remote.size());
  team_.world().copy(is_remote_->data(), remote.data(), remote.size());
  for (std::uint32_t i = 0; i < queues_; ++i)
    carried_.push_back(std::make_unique<Carried>(*this, carried_rings_->data()[i], i));
}

DeviceEngine::Carried::Carried(DeviceEngine& engine, CommandRing& memory, std::uint32_t queue)
    : CarriedQueue(memory), engine_(engine), queue_(queue) {
  engine_.client_.network->open_queue(*this);
}
DeviceEngine::Carried::~Carried() { engine_.client_.network->close_queue(*this); }

const char* DeviceEngine::Carried::check(const Command& command) {
  const CommandTarget target = checked_for_far(engine_.client_, command);
  if (target.refused == nullptr) engine_.handed_bytes_.fetch_add(target.bytes, std::memory_order_relaxed);
  return target.refused;
}

Command DeviceEngine::Carried::in_flight(std::uint64_t number) const {
  Command command = ring.commands[(number - 1) % command_ring_depth];
  command.sequence = number + forwarded().ahead;
  return command;
}

void DeviceEngine::Carried::give_up_overdue() {
  const std::uint64_t first = DoneCount{detail::load_acquired(ring.completed.value)}.commands() + 1;
  if (forwarded().given_up != 0 || first > detail::load_acquired(forwarded().sent)) return;
  const Context& ctx = engine_.client_.context;
  const std::uint64_t now = machine::clock_ns();
  if (std::exchange(seen_, first) != first) since_ns_ = now;
  const bool is_late = now - since_ns_ >= ctx.deadline_ns;
  if (!is_late && detail::read_abort_word(ctx) == 0) return;
  const Command command = in_flight(first);
  const std::string reason = is_late ? fmt::format("rank {} has not completed it for {:.3g} s", command.peer,
                                                   static_cast<double>(ctx.deadline_ns) / 1e9)
                                     : fmt::format("the world failed before rank {} had completed it", command.peer);
  engine_.note_refusal(queue_, command, reason.c_str(), !is_late);
  detail::SystemAtomic<std::uint64_t>(forwarded().given_up).store(first, std::memory_order_release);
}

void DeviceEngine::Carried::refused(std::uint64_t command, const std::string& reason) noexcept {
  detail::SystemAtomic<std::uint64_t>(forwarded().first_refused).store(command, std::memory_order_release);
  try {
    engine_.note_refusal(queue_, in_flight(command), reason.c_str());
  } catch (const std::exception& error) {  // no memory for the text
    engine_.client_.fail(error.what());
  }
}

const char* DeviceEngine::do_command(const Command& command) {
  if (command.answers) return "a device engine gives no answers";
  if (has_shape<VerbShape::count>(command.verb))
    return refuse_trigger(command.remote, command.local, triggers_ != nullptr ? triggers_.load()->tags() : 0);
  const std::lock_guard in_use(memory_user_);
  worker_->begin_ring(false, nullptr);
  const BegunCommand begun = begin_command(client_, memory_, *worker_, command, 0);
  if (worker_->end_ring(nullptr, 0)) static_cast<void>(worker_->submit());
  if (begun.refused != nullptr) return begun.refused;
  handed_bytes_.fetch_add(begun.bytes, std::memory_order_relaxed);
  const std::uint64_t start = machine::clock_ns();
  while (!worker_->over()) {
    require(machine::clock_ns() - start < client_.context.deadline_ns, Status::deadline,
            "the device has not ended a command by the deadline: " + text_of(command));
    std::this_thread::yield();
  }
  return nullptr;
}

void DeviceEngine::serve_triggers(DeviceTriggers& triggers) {
  grid_->between_leases([&] { triggers_ = &triggers; });
}

std::uint64_t DeviceEngine::read(const std::uint64_t& word) const {
  if (!client_.device.is_gpu()) return detail::load_acquired(word);
  std::uint64_t value = 0;
  team_.world().copy(&value, &word, sizeof value);
  return value;
}

std::uint64_t DeviceEngine::completed(std::uint32_t queue) const {
  return DoneCount{read(rings_[queue].completed.value)}.commands();
}

std::vector<std::string> DeviceEngine::refusals() const {
  std::vector<std::string> all;
  for (std::uint32_t i = 0; i < queues_; ++i)
    if (std::string text = refusals_.of(&rings_[i]); !text.empty()) all.push_back(std::move(text));
  return all;
}

EngineStatistics DeviceEngine::statistics() const {
  EngineStatistics sum;
  for (std::uint32_t i = 0; i < queues_; ++i) {
    const ServedRing& served = served_.data()[i];
    sum.commands += completed(i), sum.refused += read(rings_[i].refused.value), sum.bytes += read(served.bytes);
    sum.deepest = std::max(sum.deepest, read(served.deepest));
  }
  sum.bytes += handed_bytes_, sum.leases = grid_->leases(), sum.sleeps = grid_->sleeps();
  sum.cpu_s = grid_->cpu_s();
  return sum;
}

}  // namespace beeline
