// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Aggregation of visits: each block collects those for a rank in a buffer, and sends full buffers.

#include <algorithm>

#include "queues.hpp"

namespace breadth_first {

/// The buffers of all blocks of a rank.
struct VisitBuffers {
  Visit* visits;         ///< [blocks, ranks, capacity]
  std::uint32_t* fills;  ///< [blocks, ranks] visits that a buffer holds
  std::uint32_t ranks, capacity;
  std::uint32_t most_of_step;  ///< visits that a block may add between two calls of `pass`
};

/// An outlet of `expand` for one block.
///   Send  `(block, ctx, rank, visits, count)`, called by the block: sends a buffer, which may then be reused
template <class Send>
class Aggregator {
 public:
  template <class Grid>
  BEELINE_HOST_DEVICE Aggregator(const VisitBuffers& buffers, const Grid& grid, const Send& send)
      : visits_(buffers.visits + std::uint64_t{grid.block_rank()} * buffers.ranks * buffers.capacity),
        fills_(buffers.fills + grid.block_rank() * buffers.ranks), ranks_(buffers.ranks), capacity_(buffers.capacity),
        full_(buffers.capacity - buffers.most_of_step), is_alone_(grid.block().size() == 1), send_(send) {}

  BEELINE_HOST_DEVICE void add(std::uint32_t rank, const Visit& visit) {
    const std::uint32_t at =
        is_alone_ ? fills_[rank]++ : DeviceWord(fills_[rank]).fetch_add(1, std::memory_order_relaxed);
    visits_[rank * capacity_ + at] = visit;
    is_due_ |= at >= full_;
  }
  template <class Block>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status pass(const Block& block, const beeline::Context& ctx) {
    return is_alone_ && !is_due_ ? beeline::Status::ok : send_above(block, ctx, full_);
  }
  /// Sends the entries that are not sent yet. The block calls it after its last step.
  template <class Block>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status finish(const Block& block, const beeline::Context& ctx) {
    return send_above(block, ctx, 0);
  }

 private:
  template <class Block>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status send_above(const Block& block, const beeline::Context& ctx,
                                                               std::uint32_t limit) {
    is_due_ = false;
    block.sync();  // the step's visits are in the buffers
    bool any = false;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) any |= fills_[rank] > limit;
    if (!block.any(any)) return beeline::Status::ok;
    auto status = beeline::Status::ok;
    for (std::uint32_t rank = 0; rank < ranks_ && status == beeline::Status::ok; ++rank)
      if (const std::uint32_t count = fills_[rank]; count > limit)
        status = send_(block, ctx, rank, visits_ + rank * capacity_, count);
    block.sync();
    for (std::uint32_t rank = block.thread_rank(); rank < ranks_; rank += block.size())
      if (fills_[rank] > limit) fills_[rank] = 0;
    block.sync();
    return status;
  }

  Visit* const visits_;
  std::uint32_t* const fills_;
  const std::uint32_t ranks_, capacity_, full_;
  const bool is_alone_;  ///< whether the block has one thread, which then knows all of this
  bool is_due_ = false;  ///< whether this thread has seen a full buffer
  const Send send_;
};

/// Visits of a full buffer at least: 8 KB.
inline constexpr std::uint32_t aggregated_visits = 1024;
/// Blocks of a kernel that aggregates.
inline constexpr unsigned most_sending_blocks = 512;

/// Visits of a step of a block with this many threads.
[[nodiscard]] constexpr std::uint32_t visits_of_step(bool on_gpu, std::uint32_t host_threads) {
  return on_gpu ? block_threads : entries_at_once(false) * host_threads;
}

/// Collective. Visits of a step of the rank with the largest blocks.
[[nodiscard]] inline std::uint32_t most_of_step(beeline::World& world) {
  const auto host_threads = static_cast<std::uint32_t>(std::max(1, world.config().host_threads));
  return world.allreduce(visits_of_step(world.device().is_gpu(), host_threads), beeline::Reduction::maximum);
}
/// Collective. Capacity of a buffer.
[[nodiscard]] inline std::uint32_t most_visits(beeline::World& world) {
  return aggregated_visits + most_of_step(world);
}

/// The memory of `VisitBuffers`. Constructor and destructor are collective; all ranks have buffers for the same number
/// of blocks.
class BufferMemory {
 public:
  ///   resident  blocks of the kernel that fit on this rank
  BufferMemory(beeline::World& world, unsigned resident)
      : blocks_(world.allreduce(std::clamp(resident, 1u, most_sending_blocks), beeline::Reduction::minimum)),
        most_of_step_(most_of_step(world)), ranks_(static_cast<std::uint32_t>(world.size())),
        visits_(world, std::size_t{blocks_} * ranks_ * capacity()), fills_(world, std::size_t{blocks_} * ranks_) {}

  [[nodiscard]] unsigned blocks() const { return blocks_; }
  [[nodiscard]] std::uint32_t capacity() const { return aggregated_visits + most_of_step_; }
  [[nodiscard]] VisitBuffers buffers() const {
    return {visits_.data(), fills_.data(), ranks_, capacity(), most_of_step_};
  }

 private:
  unsigned blocks_;
  std::uint32_t most_of_step_, ranks_;
  beeline::SymmetricArray<Visit> visits_;
  beeline::SymmetricArray<std::uint32_t> fills_;
};

/// Bytes of `BufferMemory`. Host ranks have as many blocks as cores at most.
[[nodiscard]] inline std::uint64_t buffer_bytes(std::uint64_t ranks, bool on_gpus) {
  constexpr std::uint32_t most_host_threads = 16;
  const std::uint64_t capacity = aggregated_visits + visits_of_step(on_gpus, most_host_threads);
  return (on_gpus ? most_sending_blocks : beeline::max_host_threads) * ranks * (capacity * sizeof(Visit) + 4);
}

}  // namespace breadth_first
