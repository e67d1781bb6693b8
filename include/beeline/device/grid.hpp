// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The grid that a portable kernel receives: its blocks, and a barrier over them.

#include <cstdint>

#include "beeline/device/group.hpp"
#include "beeline/device/wait.hpp"

namespace beeline {

/// All blocks of one launch. `BlockGroup` is `Block` on a GPU, `HostTeam` on a host rank.
template <class BlockGroup>
class Grid {
 public:
  BEELINE_HOST_DEVICE Grid(const BlockGroup& block, unsigned block_rank, unsigned blocks, GridState* state)
      : block_(block), block_rank_(block_rank), blocks_(blocks), state_(state),
        generation_(state == nullptr
                        ? 0
                        : detail::DeviceAtomic<std::uint32_t>(state->generation).load(std::memory_order_relaxed)) {}

  [[nodiscard]] BEELINE_HOST_DEVICE const BlockGroup& block() const { return block_; }
  [[nodiscard]] BEELINE_HOST_DEVICE unsigned block_rank() const { return block_rank_; }
  [[nodiscard]] BEELINE_HOST_DEVICE unsigned blocks() const { return blocks_; }
  [[nodiscard]] BEELINE_HOST_DEVICE unsigned thread_rank() const {
    return block_rank_ * block_.size() + block_.thread_rank();
  }
  [[nodiscard]] BEELINE_HOST_DEVICE unsigned size() const { return blocks_ * block_.size(); }

  /// Blocks until every thread of the grid has called it. Writes of every thread before the call are then visible to
  /// all threads.
  /// The kernel must be launched with `LaunchOptions::waits`, so that every block is resident.
  /// Returns ok, deadline, aborted; invalid_argument without `waits` (this also aborts the team).
  [[nodiscard]] BEELINE_HOST_DEVICE Status sync(const Context& ctx) {
    if (state_ == nullptr) return refuse_sync(ctx);
    block_.sync();
    Status status = Status::ok;
    if (block_.thread_rank() == 0) status = arrive_and_wait(ctx);
    ++generation_;
    return agree(block_, status);
  }

 private:
  BEELINE_COLD BEELINE_HOST_DEVICE Status refuse_sync(const Context& ctx) const {
    if (block_.thread_rank() == 0)
      static_cast<void>(
          detail::refuse(ctx, Operation::grid_sync, ctx.rank, {CallFault::no_waits}, Status::invalid_argument));
    return Status::invalid_argument;
  }
  BEELINE_HOST_DEVICE Status arrive_and_wait(const Context& ctx) {
    detail::DeviceAtomic<std::uint32_t> arrived(state_->arrived), generation(state_->generation);
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == blocks_) {
      arrived.store(0, std::memory_order_relaxed);
      generation.store(generation_ + 1, std::memory_order_release);
      return Status::ok;
    }
    const Awaited awaited{Operation::grid_sync, ctx.rank, generation_ + 1, generation_ + 1};
    const std::uint32_t before = generation_;
    return detail::await_word(ctx, awaited, Timeout::none(), generation, Order::memory,
                              [before](std::uint64_t observed) { return observed != before; });
  }

  BlockGroup block_;
  unsigned block_rank_, blocks_;
  GridState* state_;
  std::uint32_t generation_;
};

}  // namespace beeline
