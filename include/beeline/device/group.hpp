// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Groups: the threads that call an operation together. Each has `thread_rank()`, `size()`, `sync()`, `any(bool)`.
///
/// | group      | on a GPU                   | on a host rank                  |
/// |------------|----------------------------|---------------------------------|
/// | Thread     | one thread                 | one thread                      |
/// | Warp       | 32 threads                 | -                               |
/// | Block      | the thread block           | -                               |
/// | HostTeam   | -                          | the CPU threads of one block    |
///
/// A portable kernel takes its block from its grid (`grid.block()`) and assumes no block size.

#include <atomic>
#include <cstdint>
#include <string>

#include "beeline/core/error.hpp"
#include "beeline/core/macros.hpp"
#include "beeline/device/impl/machine.hpp"

namespace beeline {

/// One thread, on either kind of device.
struct Thread {
  [[nodiscard]] BEELINE_HOST_DEVICE unsigned thread_rank() const { return 0; }
  [[nodiscard]] BEELINE_HOST_DEVICE unsigned size() const { return 1; }
  BEELINE_HOST_DEVICE void sync() const {}
  [[nodiscard]] BEELINE_HOST_DEVICE bool any(bool mine) const { return mine; }
};

/// The 32 threads of a warp, all of which are active.
struct Warp {
  [[nodiscard]] BEELINE_HOST_DEVICE unsigned thread_rank() const { return machine::lane(); }
  [[nodiscard]] BEELINE_HOST_DEVICE unsigned size() const { return 32; }
  BEELINE_HOST_DEVICE void sync() const { machine::warp_sync(); }
  [[nodiscard]] BEELINE_HOST_DEVICE bool any(bool mine) const { return machine::warp_any(mine); }
};

/// All threads of a thread block.
struct Block {
  [[nodiscard]] BEELINE_HOST_DEVICE unsigned thread_rank() const { return machine::block_thread_rank(); }
  [[nodiscard]] BEELINE_HOST_DEVICE unsigned size() const { return machine::block_size(); }
  BEELINE_HOST_DEVICE void sync() const { machine::block_sync(); }
  [[nodiscard]] BEELINE_HOST_DEVICE bool any(bool mine) const { return machine::block_any(mine); }
};

/// The state that the threads of a host team share.
struct HostTeamState {
  HostTeamState(unsigned threads, std::uint64_t deadline, Polling poll)
      : size(threads), deadline_ns(deadline), polling(poll) {}
  const unsigned size;
  const std::uint64_t deadline_ns;  ///< longest wait for the other threads of the team
  const Polling polling;
  std::atomic<bool> broken{false};  ///< whether a thread has ended by an exception
  std::atomic<unsigned> arrived{0}, generation{0}, any[2] = {0, 0};
};

/// The CPU threads that run one block of a kernel on a host rank.
class HostTeam {
 public:
  HostTeam(HostTeamState* state, unsigned thread_rank) : state_(state), thread_rank_(thread_rank) {}

  [[nodiscard]] BEELINE_HOST_DEVICE unsigned thread_rank() const { return thread_rank_; }
  [[nodiscard]] BEELINE_HOST_DEVICE unsigned size() const { return size_of(state_); }
  BEELINE_HOST_DEVICE void sync() const { static_cast<void>(any(false)); }
  /// Returns true on every thread of the team if `mine` is true on at least one. Includes a `sync()`. Throws aborted if
  /// another thread of the team ended by an exception, deadline if a thread does not arrive.
  [[nodiscard]] BEELINE_HOST_DEVICE bool any(bool mine) const;

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE static unsigned size_of(const HostTeamState* state);
  void await_mates(unsigned generation) const;
  HostTeamState* state_;
  unsigned thread_rank_;
};

#if BEELINE_ON_GPU

BEELINE_HOST_DEVICE inline bool HostTeam::any(bool mine) const { return mine; }
BEELINE_HOST_DEVICE inline unsigned HostTeam::size_of(const HostTeamState*) { return 1; }

#else

BEELINE_HOST_DEVICE inline unsigned HostTeam::size_of(const HostTeamState* state) { return state->size; }

BEELINE_HOST_DEVICE inline bool HostTeam::any(bool mine) const {
  HostTeamState& team = *state_;
  if (team.size == 1) return mine;
  const unsigned generation = team.generation.load(std::memory_order_relaxed);
  std::atomic<unsigned>& votes = team.any[generation & 1u];
  if (mine) votes.store(1, std::memory_order_relaxed);
  if (team.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == team.size) {
    team.arrived.store(0, std::memory_order_relaxed);
    team.any[(generation + 1) & 1u].store(0, std::memory_order_relaxed);
    team.generation.store(generation + 1, std::memory_order_release);
  } else {
    await_mates(generation);
  }
  return votes.load(std::memory_order_relaxed) != 0;
}

inline void HostTeam::await_mates(unsigned generation) const {
  std::uint64_t start = 0;
  for (std::uint32_t poll = 0; state_->generation.load(std::memory_order_acquire) == generation; ++poll) {
    machine::back_off(poll, state_->polling);
    if (poll % 64 != 0 && !machine::backs_off(poll, state_->polling)) continue;
    const std::uint64_t now = machine::clock_ns();
    if (start == 0) start = now;
    if (state_->broken) throw Error(Status::aborted, "another thread of this block ended by an exception");
    // A sync that completed before the deadline counts, also if this thread was stopped meanwhile.
    if (now - start >= state_->deadline_ns && state_->generation.load(std::memory_order_acquire) == generation)
      throw Error(Status::deadline, "thread " + std::to_string(thread_rank_) + " of " + std::to_string(state_->size) +
                                        " of a block waited " + std::to_string((now - start) / 1'000'000) +
                                        " ms in a sync that another thread does not reach");
  }
}

#endif

}  // namespace beeline
