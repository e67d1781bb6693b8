// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The lanes of the schemes whose kernel drives the ring: each block takes its own chunks through all steps, by a
/// sender that differs from scheme to scheme.

#include <algorithm>
#include <limits>

#include "beeline/device/signal.hpp"
#include "beeline/host/launch.hpp"
#include "scheme.hpp"
#include "sum.hpp"

namespace ring_reduction {

/// What every block has before it.
struct Lanes {
  Ring ring;
  float *data, *inbox;
  beeline::PaddedWord* arrived;  ///< [lanes], symmetric: chunks of the lane that are here, all reductions counted

  /// Where a transfer goes on the next rank, as an address of this one's: its inbox, or straight into the vector.
  [[nodiscard]] BEELINE_HOST_DEVICE float* destination(const Transfer& transfer) const {
    return transfer.reduces ? inbox + transfer.inbox : data + transfer.sends.first;
  }
  /// Whether what is sent is the sum of this rank's values and of what arrived in the step before.
  [[nodiscard]] BEELINE_HOST_DEVICE bool sends_sum(const Transfer& transfer) const {
    return transfer.step > 0 && transfer.step < ring.ranks;
  }
  /// What arrived in the step before, which lies one part further back.
  [[nodiscard]] BEELINE_HOST_DEVICE const float* arrived_before(const Transfer& transfer) const {
    return inbox + transfer.inbox - ring.part_elements;
  }
  /// Adds what is to be sent, if it is a sum, and stores it where it is sent from. Every thread of the block calls it.
  template <class Block>
  BEELINE_HOST_DEVICE void prepare(const Block& block, const Transfer& transfer) const {
    float* const mine = data + transfer.sends.first;
    if (sends_sum(transfer))
      store_sum(block.thread_rank(), block.size(),
                {mine, arrived_before(transfer), mine, nullptr, transfer.sends.count});
  }
  /// Chunks of a part that a lane carries.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t chunks_of(unsigned lane, unsigned lanes) const {
    return (ring.chunks - lane + lanes - 1) / lanes;
  }
};

/// Runs reductions in all lanes. `Sender`, a small structure, has for each block
///   Status send(block, ctx, lanes, transfer, signal, number)   sends a chunk, and behind it the signal
///   Status end(block, ctx)                                     at the end of a reduction
template <class Sender>
struct RunLanes {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, Lanes lanes, Sender sender,
                                      std::uint64_t done, int reductions) const {
    const unsigned lane = grid.block_rank();
    const std::uint32_t chunks = lanes.chunks_of(lane, grid.blocks());
    std::uint64_t sequence = done * lanes.ring.steps() * chunks;
    for (int reduction = 0; reduction < reductions; ++reduction) {
      if (reduce(grid, ctx, lanes, sender, chunks, sequence) != beeline::Status::ok) return;
      sequence += std::uint64_t{lanes.ring.steps()} * chunks;
    }
  }

 private:
  /// One reduction of the block's chunks; its chunks are numbered from `sequence` on.
  template <class Grid>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status reduce(const Grid& grid, const beeline::Context& ctx,
                                                           const Lanes& lanes, const Sender& sender,
                                                           std::uint32_t chunks, std::uint64_t sequence) const {
    using beeline::Status;
    const auto& block = grid.block();
    const unsigned lane = grid.block_rank();
    const std::uint32_t steps = lanes.ring.steps();
    std::uint64_t* const arrived = &lanes.arrived[lane].value;
    // Behind the last step the chunks that it brought are only waited for.
    for (std::uint32_t step = 0; step <= steps; ++step)
      for (std::uint32_t i = 0; i < chunks; ++i) {
        const std::uint64_t number = sequence + std::uint64_t{step} * chunks + i + 1;
        Status status = Status::ok;
        if (step > 0)
          status = beeline::wait(block, ctx, arrived, beeline::Compare::greater_equal, number - chunks,
                                 lanes.ring.previous());
        if (status == Status::ok && step < steps)
          status = sender.send(grid, ctx, lanes, lanes.ring.transfer(step, lane + i * grid.blocks()), arrived, number);
        if (status != Status::ok) return status;
      }
    return sender.end(grid, ctx);
  }
};

/// A scheme that is one kernel for all reductions. `Sender::lanes` blocks at most on a GPU.
template <class Sender>
class LaneScheme : public Scheme {
 public:
  void run(int reductions) override {
    if (ring_.ranks == 1) return;
    const int most = reductions_at_once();
    for (int left = reductions; left > 0; left -= most) run_at_once(std::min(left, most));
  }
  const Ring& ring() const override { return ring_; }
  unsigned lanes() const override { return lanes_; }

 protected:
  LaneScheme(Vectors& vectors, std::size_t chunk_bytes)
      : Scheme(vectors), ring_(vectors.ring(chunk_bytes)),
        lanes_(vectors.agree_on_lanes(
            ring_, Sender::lanes,
            beeline::resident_blocks<RunLanes<Sender>, Lanes, Sender, std::uint64_t, int>(world(), block_threads))),
        arrived_(world(), lanes_) {}

  [[nodiscard]] beeline::PaddedWord* arrived() const { return arrived_.data(); }

 private:
  [[nodiscard]] virtual Sender sender() const = 0;
  /// Reductions of a launch at most.
  [[nodiscard]] virtual int reductions_at_once() const { return std::numeric_limits<int>::max(); }
  /// What the host does before the kernel of so many reductions starts, behind `done` of them.
  virtual void prepare(const Lanes& /*all*/, std::uint64_t /*done*/, int /*reductions*/) {}

  void run_at_once(int reductions) {
    const Lanes all{ring_, vectors().data(), vectors().inbox(), arrived_.data()};
    prepare(all, done_, reductions);
    beeline::launch(world(), {.blocks = lanes_, .threads = block_threads, .waits = true}, RunLanes<Sender>{}, all,
                    sender(), done_, reductions);
    done_ += static_cast<std::uint64_t>(reductions);
    world().synchronize();
  }

  Ring ring_;
  unsigned lanes_;
  beeline::SymmetricArray<beeline::PaddedWord> arrived_;
  std::uint64_t done_ = 0;
};

}  // namespace ring_reduction
