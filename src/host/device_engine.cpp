// SPDX-License-Identifier: Apache-2.0
#include "host/device_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "beeline/host/launch.hpp"
#include "control/command_check.hpp"
#include "host/device_triggers.hpp"
#include "host/world/engines.hpp"
#include "host/world/memory_map.hpp"
#include "host/world/part.hpp"
#include "host/world/routes.hpp"

namespace beeline {

namespace {

/// Few threads, so that the block fits beside kernels that occupy nearly all of each multiprocessor.
constexpr unsigned engine_block_threads = 128;
/// Largest number of memory pieces that the block knows. Commands on other memory are handed to the host.
constexpr std::size_t max_pieces = 1024;

}  // namespace

DeviceEngine::DeviceEngine(Team& team, CommandRing* rings, std::uint32_t queues)
    : team_(team), client_(world_part<Engines>(team.world()).client()), worker_(make_worker(client_)),
      refusals_(world_part<Engines>(team.world()).device_refusals()), rings_(rings), queues_(queues),
      served_(team, queues), pieces_(team, max_pieces), shown_(team, max_pieces, Heap::pinned),
      handed_(team, queues, Heap::pinned) {
  grid_.emplace(team, LeasedGrid::Work{.name = "device engine (1 block)",
                                       .share = share(),
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

double DeviceEngine::share() const {
  World& world = team_.world();
  if (!world.device().is_gpu())
    return std::max(1u, static_cast<unsigned>(world.config().host_threads)) / static_cast<double>(max_host_threads);
  return LeasedGrid::share_of(world, resident_blocks<ServiceKernel, Service>(world, engine_block_threads), 1);
}

void DeviceEngine::start(Stream& stream, const Lease& lease) {
  show_pieces(stream);
  const Service service{.rings = rings_,
                        .served = served_.data(),
                        .handed = handed_.data(),
                        .pieces = pieces_.data(),
                        .queues = queues_,
                        .piece_count = static_cast<std::uint32_t>(shown_count_),
                        .ranks = static_cast<std::uint32_t>(client_.ranks),
                        .lease = lease,
                        .triggers = triggers_ != nullptr ? triggers_.load()->show() : TriggerLists{}};
  launch(team_.world(), {.threads = engine_block_threads, .stream = &stream, .name = "device engine"}, ServiceKernel{},
         service);
}

void DeviceEngine::show_pieces(Stream& stream) {
  std::size_t count = 0;
  bool has_changed = false;
  for (const std::span<const std::byte> piece : world_part<MemoryMap>(team_.world()).range().pieces()) {
    if (count == max_pieces || !is_reachable(piece)) continue;
    const ReachablePiece reachable{reinterpret_cast<std::uintptr_t>(piece.data()), piece.size()};
    has_changed |= count >= shown_count_ || shown_.data()[count] != reachable;
    shown_.data()[count++] = reachable;
  }
  shown_count_ = count;
  if (has_changed) stream.copy(pieces_.data(), shown_.data(), count * sizeof(ReachablePiece));
}

/// Whether this rank's kernels reach a piece of memory.
bool DeviceEngine::is_reachable(std::span<const std::byte> piece) const {
  const Routes& routes = world_part<Routes>(team_.world());
  const int owner = world_part<MemoryMap>(team_.world()).range().owner_of(piece.data());
  if (owner < 0 || (!client_.device.is_gpu() && !client_.is_host_memory(piece.data()))) return false;
  return routes.to_gpu_of(owner).is_direct() && routes.to(owner).is_direct();
}

void DeviceEngine::answer_handed() {
  for (std::uint32_t i = 0; i < queues_; ++i) {
    HandedCommand& handed = handed_.data()[i];
    const std::uint64_t number = detail::load_acquired(handed.number);
    if (number == handed.answered) continue;
    const Command command = handed.command;
    if (const char* reason = do_command(command)) {
      refuse(i, command, reason);
      detail::SystemAtomic<std::uint64_t>(handed.is_refused).store(1, std::memory_order_release);
    }
    detail::SystemAtomic<std::uint64_t>(handed.answered).store(number, std::memory_order_release);
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

void DeviceEngine::refuse(std::uint32_t queue, const Command& command, const char* reason) {
  const std::string text = refusal_of(client_.rank, command, reason);
  log(LogLevel::error, text, client_.rank);
  client_.note_refusal(text);
  refusals_.add(&rings_[queue], text);
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
