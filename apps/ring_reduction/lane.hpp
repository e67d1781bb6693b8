// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The lanes of the schemes whose kernel drives the ring. Each lane takes its own chunks through all steps, with one or
/// several blocks, and with a sender that each scheme defines.
///
/// No lane waits for the completion of its sends. A rank's result of a chunk depends on the sums of all ranks, so a
/// rank that has received the result knows that every rank has added its part and that these sums have arrived.

#include <algorithm>
#include <limits>

#include "beeline/device/put_get.hpp"
#include "beeline/device/signal.hpp"
#include "beeline/host/launch.hpp"
#include "common/last_block.hpp"
#include "scheme.hpp"
#include "sum.hpp"

namespace ring_reduction {

/// A block's position: the lane whose chunks it works on, and its number among the lane's blocks, which share each sum.
struct Place {
  unsigned lane, member;
};

/// Data of every block.
struct Lanes {
  Ring ring;
  LaneShape shape;
  float *data, *inbox;
  beeline::PaddedWord* arrived;  ///< [lanes], symmetric: chunks of the lane that have arrived in all reductions
  std::uint32_t* ready;          ///< [steps, chunks] blocks that have come to a transfer; 0 before the first and after
                                 ///< the last

  [[nodiscard]] BEELINE_HOST_DEVICE Place place_of(unsigned block) const {
    return {block % shape.lanes, block / shape.lanes};
  }
  /// The destination of a transfer on the next rank, as an address on this rank: the inbox, or directly the vector.
  [[nodiscard]] BEELINE_HOST_DEVICE float* destination(const Transfer& transfer) const {
    return transfer.reduces ? inbox + transfer.inbox : data + transfer.sends.first;
  }
  /// Whether the transfer sends the sum of this rank's values and those that arrived in the previous step.
  [[nodiscard]] BEELINE_HOST_DEVICE bool sends_sum(const Transfer& transfer) const {
    return transfer.step > 0 && transfer.step < ring.ranks;
  }
  /// The chunk that arrived in the previous step, which lies one part further back.
  [[nodiscard]] BEELINE_HOST_DEVICE float* arrived_before(const Transfer& transfer) const {
    return inbox + transfer.inbox - ring.part_elements;
  }
  /// The source of a transfer for an engine. A sum lies in the inbox, in place of its last term, unless it is a result.
  /// So a reduction changes nothing that transfers of the previous reduction may still read, and no lane waits for its
  /// engine.
  [[nodiscard]] BEELINE_HOST_DEVICE float* source(const Transfer& transfer) const {
    return transfer.step > 0 && transfer.reduces ? arrived_before(transfer) : data + transfer.sends.first;
  }
  /// If a sum is to be sent, adds the block's share and stores it at `source`. Returns true to the last block of the
  /// lane that comes to the transfer: the whole sum is then stored, and the lane's earlier transfers have been posted,
  /// each by the block that was the last there. Every thread of the block calls it.
  template <class Block>
  [[nodiscard]] BEELINE_HOST_DEVICE bool prepare(const Block& block, const Transfer& transfer, unsigned member) const {
    if (sends_sum(transfer)) {
      const Range share = share_of(transfer.sends.count, member, shape.blocks);
      store_sum(block.thread_rank(), block.size(),
                {data + transfer.sends.first + share.first, arrived_before(transfer) + share.first,
                 source(transfer) + share.first, nullptr, share.count});
    }
    if (shape.blocks == 1) return true;
    return apps::is_last(block, &ready[transfer.step * ring.chunks + transfer.chunk], shape.blocks);
  }
  /// Stores the chunk of a transfer at the next rank; if it is a sum, adds while storing. If only an engine reaches
  /// that rank, adds at `source`, and puts the sum from there. Every thread of the block calls it. Does not order
  /// memory.
  template <class Block>
  BEELINE_HOST_DEVICE void store(const Block& block, const beeline::Context& ctx, const Transfer& transfer) const {
    const std::uint32_t next = ring.next();
    float *mine = data + transfer.sends.first, *there = destination(transfer);
    // The first step of the all-gather sends the complete sum, which is this rank's result, too.
    if (sends_sum(transfer) && !beeline::has_loads_and_stores(ctx, there, next)) {
      float* const sum = source(transfer);
      store_sum(block.thread_rank(), block.size(),
                {mine, arrived_before(transfer), sum, nullptr, transfer.sends.count});
      beeline::put(block, ctx, there, sum, transfer.sends.count, next);
    } else if (sends_sum(transfer)) {
      store_sum(block.thread_rank(), block.size(),
                {mine, arrived_before(transfer), ctx.at(there, next), transfer.reduces ? nullptr : mine,
                 transfer.sends.count});
    } else {
      beeline::put(block, ctx, there, mine, transfer.sends.count, next);
    }
  }
  /// Number of chunks of a part that a lane carries.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t chunks_of(unsigned lane) const {
    return (ring.chunks - lane + shape.lanes - 1) / shape.lanes;
  }
};

/// Runs reductions in all lanes. `Sender`, a small structure, has
///   Status send(block, ctx, lanes, transfer, place, number)   sends a chunk, then sets the lane's signal; all blocks
///   of the lane together do so once
template <class Sender>
struct RunLanes {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, Lanes lanes, Sender sender,
                                      std::uint64_t done, int reductions) const {
    const Place place = lanes.place_of(grid.block_rank());
    const std::uint32_t chunks = lanes.chunks_of(place.lane);
    std::uint64_t sequence = done * lanes.ring.steps() * chunks;
    for (int reduction = 0; reduction < reductions; ++reduction) {
      if (reduce(grid.block(), ctx, lanes, sender, place, sequence) != beeline::Status::ok) return;
      sequence += std::uint64_t{lanes.ring.steps()} * chunks;
    }
  }

 private:
  /// The block's part of one reduction; the lane's chunks are numbered from `sequence` on.
  template <class Block>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status reduce(const Block& block, const beeline::Context& ctx,
                                                           const Lanes& lanes, const Sender& sender, const Place& place,
                                                           std::uint64_t sequence) const {
    using beeline::Status;
    const std::uint32_t steps = lanes.ring.steps(), chunks = lanes.chunks_of(place.lane);
    std::uint64_t* const arrived = &lanes.arrived[place.lane].value;
    // After the last step, the chunks of that step are only waited for.
    for (std::uint32_t step = 0; step <= steps; ++step)
      for (std::uint32_t i = 0; i < chunks; ++i) {
        const std::uint64_t number = sequence + std::uint64_t{step} * chunks + i + 1;
        Status status = Status::ok;
        if (step > 0)
          status = beeline::wait(block, ctx, arrived, beeline::Compare::greater_equal, number - chunks,
                                 lanes.ring.previous());
        if (status == Status::ok && step < steps)
          status = sender.send(block, ctx, lanes, lanes.ring.transfer(step, place.lane + i * lanes.shape.lanes), place,
                               number);
        if (status != Status::ok) return status;
      }
    return Status::ok;
  }
};

/// A scheme that is one kernel for all reductions, with `Sender::on_gpus` lanes and blocks at most on a GPU.
template <class Sender>
class LaneScheme : public Scheme {
 public:
  void run(int reductions) override {
    if (ring_.ranks == 1) return;
    const int most = reductions_at_once();
    prepare(all(), done_, std::min(reductions, most));
    for (int left = reductions; left > 0;) {
      const int now = std::min(left, most);
      beeline::launch(world(), {.blocks = shape_.lanes * shape_.blocks, .threads = block_threads, .waits = true},
                      RunLanes<Sender>{}, all(), sender(), done_, now);
      done_ += static_cast<std::uint64_t>(now), left -= now;
      if (left > 0) prepare(all(), done_, std::min(left, most));
      world().synchronize();
    }
  }
  const Ring& ring() const override { return ring_; }
  LaneShape lanes() const override { return shape_; }

 protected:
  LaneScheme(Vectors& vectors, std::size_t chunk_bytes)
      : Scheme(vectors), ring_(vectors.ring(chunk_bytes)),
        shape_(vectors.agree_on_lanes(
            ring_, Sender::on_gpus,
            beeline::resident_blocks<RunLanes<Sender>, Lanes, Sender, std::uint64_t, int>(world(), block_threads))),
        arrived_(world(), shape_.lanes),
        ready_(world(), std::max<std::size_t>(1, std::size_t{ring_.steps()} * ring_.chunks)) {}

  [[nodiscard]] beeline::PaddedWord* arrived() const { return arrived_.data(); }

 private:
  [[nodiscard]] virtual Sender sender() const = 0;
  /// Largest number of reductions in one launch.
  [[nodiscard]] virtual int reductions_at_once() const { return std::numeric_limits<int>::max(); }
  /// Host work for the kernel that runs the next `reductions` reductions, after `done` earlier ones. Called before the
  /// kernel starts, while the previous kernel runs.
  virtual void prepare(const Lanes& /*all*/, std::uint64_t /*done*/, int /*reductions*/) {}

  [[nodiscard]] Lanes all() const {
    return {ring_, shape_, vectors().data(), vectors().inbox(), arrived_.data(), ready_.data()};
  }

  Ring ring_;
  LaneShape shape_;
  beeline::SymmetricArray<beeline::PaddedWord> arrived_;
  beeline::SymmetricArray<std::uint32_t> ready_;
  std::uint64_t done_ = 0;
};

}  // namespace ring_reduction
