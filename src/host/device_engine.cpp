// SPDX-License-Identifier: Apache-2.0
#include "host/device_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <thread>

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
      served_(team, queues), pieces_(team), handed_(team, queues, Heap::pinned), remote_(queues) {
  grid_.emplace(team, LeasedGrid::Work{.name = "device engine (1 block)",
                                       .share = share_of_block<ServiceKernel, Service>(team.world()),
                                       .start = [this](Stream& stream, const Lease& lease) { start(stream, lease); },
                                       .after = [this] { answer_handed(); },
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
                        .handed = handed_.data(),
                        .pieces = pieces_.data(),
                        .queues = queues_,
                        .piece_count = pieces_.count(),
                        .ranks = static_cast<std::uint32_t>(client_.ranks),
                        .lease = lease,
                        .triggers = triggers_ != nullptr ? triggers_.load()->show() : TriggerLists{}};
  launch(team_.world(), {.threads = engine_block_threads, .stream = &stream, .name = "device engine"}, ServiceKernel{},
         service);
}

void DeviceEngine::answer_handed() {
  std::vector<std::uint32_t> sent;  // queues whose commands are in flight to other nodes, at the same time
  for (std::uint32_t i = 0; i < queues_; ++i) {
    const HandedCommand& handed = handed_.data()[i];
    if (detail::load_acquired(handed.number) == handed.answered) continue;
    const bool leaves = is_for_other_node(client_, handed.command);
    const char* const reason = leaves ? send_command(i, handed.command) : do_command(handed.command);
    if (leaves && reason == nullptr)
      sent.push_back(i);
    else
      answer(i, reason == nullptr ? std::string() : reason);
  }
  for (const std::uint32_t queue : sent) answer(queue, await_sent(queue));
}

void DeviceEngine::answer(std::uint32_t queue, const std::string& reason) {
  HandedCommand& handed = handed_.data()[queue];
  if (!reason.empty()) {
    const std::string text = refusal_of(client_.rank, handed.command, reason.c_str());
    log(LogLevel::error, text, client_.rank);
    client_.note_refusal(text);
    refusals_.add(&rings_[queue], text);
    detail::SystemAtomic<std::uint64_t>(handed.is_refused).store(1, std::memory_order_release);
  }
  detail::SystemAtomic<std::uint64_t>(handed.answered)
      .store(detail::load_acquired(handed.number), std::memory_order_release);
}

const char* DeviceEngine::send_command(std::uint32_t queue, const Command& command) {
  if (command.answers) return "a device engine gives no answers";
  const CommandTarget target = checked_for_far(client_, command);
  if (target.refused != nullptr) return target.refused;
  std::unique_ptr<RemoteQueue>& remote = remote_[queue];
  if (remote == nullptr) remote = std::make_unique<RemoteQueue>(*client_.network, [] {});
  remote->hand_over(command, {}, 0);
  remote->submit();
  handed_bytes_.fetch_add(target.bytes, std::memory_order_relaxed);
  return nullptr;
}

/// A command that does not end is refused: a silent rank must not end this one.
std::string DeviceEngine::await_sent(std::uint32_t queue) {
  RemoteQueue::Handed over;
  std::string refusal;
  const Context& ctx = client_.context;
  const std::uint64_t start = machine::clock_ns();
  for (std::uint32_t poll = 0; !remote_[queue]->take_over(over, refusal); ++poll) {
    const std::uint32_t peer = handed_.data()[queue].command.peer;
    if (machine::clock_ns() - start >= ctx.deadline_ns)
      return fmt::format("rank {} has not completed it for {:.3g} s", peer, static_cast<double>(ctx.deadline_ns) / 1e9);
    if (detail::read_abort_word(ctx) != 0) return fmt::format("the world failed before rank {} had completed it", peer);
    machine::back_off(poll, ctx.polling);
  }
  return refusal;
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
