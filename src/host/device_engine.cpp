// SPDX-License-Identifier: Apache-2.0
#include "host/device_engine.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <system_error>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "beeline/host/launch.hpp"
#include "control/command_check.hpp"
#include "host/world_implementation.hpp"

namespace beeline {

namespace {

constexpr std::uint64_t lease_ns = 2'000'000, idle_ns = 200'000;
constexpr unsigned service_threads = 512;
/// Pieces of memory that a block knows of. What lies in others is handed to the host.
constexpr std::size_t max_pieces = 1024;
/// A host rank's thread is woken by whoever posts.
constexpr int woken_poll_us = 100'000;

}  // namespace

DeviceEngine::DeviceEngine(Team& team, CommandRing* rings, CommandTickets* tickets, std::uint32_t queues)
    : team_(team), client_(team.world().implementation().engine_client()), worker_(make_worker(client_)),
      poll_us_(team.world().config().engine_poll_us), rings_(rings), queues_(queues), served_(team, queues),
      pieces_(team, max_pieces), handed_(team, queues, Heap::pinned), wanted_(team, 1, Heap::pinned),
      stream_(team.world().make_stream(StreamPriority::high)) {
  World& world = team.world();
  std::uint64_t* const wanted = wanted_.data();
  for (std::uint32_t i = 0; i < queues; ++i) world.copy(&tickets[i].wanted, &wanted, sizeof wanted);
  book();
  try {
    lease();  // puts the rings to sleep, so that who posts first asks for the next
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    world.implementation().ledger().forget(this);
    throw Error(Status::no_resource, fmt::format("a device engine's thread: {}", error.what()));
  } catch (...) {
    world.implementation().ledger().forget(this);
    throw;
  }
}

DeviceEngine::~DeviceEngine() {
  closing_ = true;
  bell_.wake();
  thread_.join();
  team_.world().implementation().ledger().forget(this);
}

/// A waiting grid that leaves no room for the block would wait for ever.
void DeviceEngine::book() {
  World& world = team_.world();
  const unsigned room = world.device().is_gpu() ? resident_blocks<ServiceKernel, Service>(world, service_threads) *
                                                      static_cast<unsigned>(world.ranks_on_device())
                                                : max_host_threads / static_cast<unsigned>(world.config().host_threads);
  world.implementation().ledger().claim(
      this, nullptr, 1.0 / std::max(1u, room),
      [rank = world.rank()] { return fmt::format("rank {}'s device engine (1 block)", rank); }, [] { return false; });
}

void DeviceEngine::run() {
  try {
    while (!closing_)
      if (detail::load_acquired(*wanted_.data()) != 0)
        lease();
      else
        rest();
  } catch (const std::exception& error) {
    client_.fail(error.what());
  }
}

void DeviceEngine::rest() {
  sleeps_.fetch_add(1, std::memory_order_relaxed);
  if (client_.device.is_gpu() && poll_us_ == 0)
    std::this_thread::yield();
  else
    bell_.wait(client_.device.is_gpu() ? poll_us_ : woken_poll_us);
}

void DeviceEngine::lease() {
  detail::SystemAtomic<std::uint64_t>(*wanted_.data()).store(0, cuda::memory_order_release);
  const std::shared_lock in_use(*client_.in_use);
  show_pieces();
  const Service service{.rings = rings_,
                        .served = served_.data(),
                        .handed = handed_.data(),
                        .wanted = wanted_.data(),
                        .pieces = pieces_.data(),
                        .queues = queues_,
                        .piece_count = static_cast<std::uint32_t>(shown_.size()),
                        .ranks = static_cast<std::uint32_t>(client_.ranks),
                        .asleep_mark = reinterpret_cast<std::uintptr_t>(&bell_),
                        .lease_ns = lease_ns,
                        .idle_ns = idle_ns};
  launch(team_.world(), {.threads = service_threads, .stream = stream_.get(), .name = "device engine"}, ServiceKernel{},
         service);
  leases_.fetch_add(1, std::memory_order_relaxed);
  await_block();
  answer_handed();
}

void DeviceEngine::show_pieces() {
  std::vector<ReachablePiece> pieces;
  for (const std::span<const std::byte> piece : team_.world().implementation().memory->range().pieces())
    if (pieces.size() < max_pieces && is_reachable(piece))
      pieces.push_back({reinterpret_cast<std::uintptr_t>(piece.data()), piece.size()});
  const auto same = [](const ReachablePiece& a, const ReachablePiece& b) {
    return a.first == b.first && a.bytes == b.bytes;
  };
  if (std::equal(pieces.begin(), pieces.end(), shown_.begin(), shown_.end(), same)) return;
  shown_ = std::move(pieces);
  stream_->copy(pieces_.data(), shown_.data(), shown_.size() * sizeof(ReachablePiece));
  await_block();
}

/// By the kernels of this rank.
bool DeviceEngine::is_reachable(std::span<const std::byte> piece) const {
  const World::Implementation& world = team_.world().implementation();
  const int owner = world.memory->range().owner_of(piece.data());
  if (owner < 0 || (!client_.device.is_gpu() && !client_.is_host_memory(piece.data()))) return false;
  const auto index = static_cast<std::size_t>(owner);
  return world.routes[index].route == Route::direct && world.peer_routes[index].way == Way::direct;
}

void DeviceEngine::await_block() {
  const std::uint64_t start = machine::clock_ns();
  const std::int64_t poll_ns = std::int64_t{std::max(poll_us_, 1)} * 1'000;
  while (!stream_->idle()) {
    require(
        machine::clock_ns() - start < client_.context.deadline_ns, Status::deadline,
        "its block has not begun, or not ended, by the deadline: the device has no room, or another's work holds it");
    if (client_.device.is_gpu() || !stream_->sleep_until_drained(poll_ns))
      std::this_thread::sleep_for(std::chrono::microseconds(poll_us_));
  }
}

void DeviceEngine::answer_handed() {
  for (std::uint32_t i = 0; i < queues_; ++i) {
    HandedCommand& handed = handed_.data()[i];
    if (detail::load_acquired(handed.command.sequence) == handed.answered) continue;
    const Command command = handed.command;
    if (const char* reason = do_command(command)) {
      refuse(i, command, reason);
      detail::SystemAtomic<std::uint64_t>(handed.is_refused).store(1, cuda::memory_order_release);
    }
    detail::SystemAtomic<std::uint64_t>(handed.answered).store(command.sequence, cuda::memory_order_release);
  }
}

const char* DeviceEngine::do_command(const Command& command) {
  if (command.answers) return "a device engine gives no answers";
  const CommandTarget target = target_of(client_, memory_, command);
  if (target.refused != nullptr) return target.refused;
  if (const char* reason = worker_->begin(command, target.address, 0)) return reason;
  worker_->submit(nullptr, 0);
  handed_bytes_.fetch_add(target.bytes, std::memory_order_relaxed);
  const std::uint64_t start = machine::clock_ns();
  while (!worker_->over()) {
    require(machine::clock_ns() - start < client_.context.deadline_ns, Status::deadline,
            "the device has not ended a command by the deadline: " + text_of(command));
    std::this_thread::yield();
  }
  return nullptr;
}

void DeviceEngine::refuse(std::uint32_t queue, const Command& command, const char* reason) {
  const std::string text = fmt::format("rank {}'s engine refused command {} of a queue ({}): {}", client_.rank,
                                       command.sequence, text_of(command), reason);
  log(LogLevel::error, text, client_.rank);
  client_.note_refusal(text);
  World::Implementation& world = team_.world().implementation();
  const std::lock_guard lock(world.queue_engine_mutex);
  world.device_refusals.push_back(text);
  refusals_[queue] = text;
}

std::uint64_t DeviceEngine::read(const std::uint64_t& word) const {
  if (!client_.device.is_gpu()) return detail::load_acquired(word);
  std::uint64_t value = 0;
  team_.world().copy(&value, &word, sizeof value);
  return value;
}

std::uint64_t DeviceEngine::completed(std::uint32_t queue) const { return read(rings_[queue].completed.value); }

std::vector<std::string> DeviceEngine::refusals() const {
  const std::lock_guard lock(team_.world().implementation().queue_engine_mutex);
  std::vector<std::string> all;
  for (const auto& [queue, text] : refusals_) all.push_back(text);
  return all;
}

EngineStatistics DeviceEngine::statistics() const {
  EngineStatistics sum;
  for (std::uint32_t i = 0; i < queues_; ++i) {
    const ServedRing& served = served_.data()[i];
    sum.commands += completed(i), sum.refused += read(rings_[i].refused.value), sum.bytes += read(served.bytes);
    sum.deepest = std::max(sum.deepest, read(served.deepest));
  }
  sum.bytes += handed_bytes_, sum.leases = leases_, sum.sleeps = sleeps_;
  clockid_t clock{};
  timespec used{};
  if (::pthread_getcpuclockid(const_cast<std::thread&>(thread_).native_handle(), &clock) == 0 &&
      ::clock_gettime(clock, &used) == 0)
    sum.cpu_s = static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
  return sum;
}

}  // namespace beeline
