// SPDX-License-Identifier: Apache-2.0
#include "host/leased_grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/device/impl/route.hpp"
#include "beeline/host/world.hpp"
#include "control/thread_time.hpp"
#include "core/thread.hpp"
#include "host/world/engines.hpp"
#include "host/world/grids.hpp"
#include "host/world/memory_map.hpp"
#include "host/world/part.hpp"

namespace beeline {

namespace {

/// Time between two calls of `meanwhile`.
constexpr std::uint64_t look_ns = 20'000'000;
/// Polling interval of a host rank's thread, which posters wake.
constexpr int woken_grid_poll_us = 100'000;

}  // namespace

LeasedGrid::LeasedGrid(Team& team, Work work)
    : world_(team.world()), work_(std::move(work)), poll_us_(world_.config().engine_poll_us),
      wanted_(team, 1, Heap::pinned), stream_(world_.make_stream(StreamPriority::high)),
      memory_user_(world_part<MemoryMap>(world_).range().users()), lease_{wanted_.data(),
                                                                          reinterpret_cast<std::uintptr_t>(
                                                                              static_cast<Waker*>(&bell_)),
                                                                          work_.lease_ns, work_.idle_ns} {
  book();
  try {
    Lease first = lease_;
    first.lease_ns = 0;
    lease(first);
    thread_ = detail::start_thread_for(fmt::format("a {}", work_.name), [this] { run(); });
  } catch (...) {
    world_part<Grids>(world_).ledger().forget(this);
    throw;
  }
}

LeasedGrid::~LeasedGrid() {
  closing_ = true;
  bell_.wake();
  thread_.join();
  world_part<Grids>(world_).ledger().forget(this);
}

/// Books this grid's room, since a waiting grid that leaves no room for this grid would wait for it for ever.
void LeasedGrid::book() {
  world_part<Grids>(world_).ledger().keep(
      this, work_.room, [rank = world_.rank(), name = work_.name] { return fmt::format("rank {}'s {}", rank, name); });
}

void LeasedGrid::between_leases(const std::function<void()>& change) {
  ++changes_;
  const std::lock_guard lock(leased_);
  --changes_;
  change();
}

void LeasedGrid::want() {
  lease_.ask();
  bell_.wake();
}

void LeasedGrid::run() {
  try {
    if (world_.device().is_gpu()) use_gpu(world_.device().index);  // CUDA gives other threads a context on GPU 0
    while (!closing_) {
      if (work_.between) work_.between();
      if (changes_ > 0)
        std::this_thread::yield();
      else if (detail::load_acquired(*wanted_.data()) != 0)
        lease(lease_);
      else
        rest();
    }
  } catch (const std::exception& error) {
    world_part<Engines>(world_).client().fail(fmt::format("its {}: {}", work_.name, error.what()));
  }
}

void LeasedGrid::rest() {
  sleeps_.fetch_add(1, std::memory_order_relaxed);
  const bool is_gpu = world_.device().is_gpu();
  if (is_gpu && poll_us_ == 0)
    std::this_thread::yield();
  else
    bell_.wait(is_gpu ? poll_us_ : woken_grid_poll_us);
}

void LeasedGrid::lease(const Lease& terms) {
  const std::lock_guard lock(leased_);
  detail::SystemAtomic<std::uint64_t>(*wanted_.data()).store(0, std::memory_order_release);
  {
    const std::lock_guard in_use(memory_user_);
    work_.start(*stream_, terms);
    leases_.fetch_add(1, std::memory_order_relaxed);
    await_end();
  }
  if (work_.after) work_.after();
}

void LeasedGrid::await_end() {
  const std::uint64_t start = machine::clock_ns();
  const auto longest_ns = static_cast<std::uint64_t>(world_.config().stream_deadline_ns);
  const std::int64_t poll_ns = std::int64_t{std::max(poll_us_, 1)} * 1'000;
  if (!work_.goes_on || looked_ns_ == 0) looked_ns_ = start;
  while (work_.is_over ? !work_.is_over() : !stream_->idle()) {
    const std::uint64_t now = machine::clock_ns();
    require(now - start < longest_ns, Status::deadline,
            "it has not begun, or not ended, by the deadline of streams: others' work holds the device");
    if (work_.meanwhile && now - looked_ns_ >= look_ns) {
      work_.meanwhile();
      looked_ns_ = now;
    }
    if (!world_.device().is_gpu() && stream_->sleep_until_drained(poll_ns)) continue;
    // Another rank's thread may share this core. If it had to wait for the end of this lease, each message, and each
    // answer to this thread, would be late by a lease.
    if (poll_us_ == 0)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(poll_us_));
  }
}

double LeasedGrid::cpu_s() const { return cpu_seconds_of(thread_); }

}  // namespace beeline
