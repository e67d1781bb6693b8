// SPDX-License-Identifier: Apache-2.0
/// @file
/// Scheme device: one kernel for all reductions, without the CPU. Each block has its own lane of chunks, which it takes
/// through all steps: it waits for the signal of a chunk, adds it to its own on the way to the next rank's inbox (in
/// the all-gather it copies it there, straight into the vector), and signals that. Source: seed 003, intra-kernel
/// communication; seed 000 section 5.8.1 (persistent threads).

#include "beeline/device/put_get.hpp"
#include "scheme.hpp"
#include "sum.hpp"

namespace ring_reduction {

namespace {

/// Blocks that saturate a link, with what the sums read beside it.
constexpr unsigned gpu_lanes = 32;

/// What every block has before it.
struct Lanes {
  Ring ring;
  float *data, *inbox;
  beeline::PaddedWord* arrived;  ///< [lanes], symmetric: chunks of the lane that are here, all reductions counted
};

/// One block's lane.
template <class BlockGroup>
class Lane {
 public:
  /// `done` reductions have used these signals before.
  BEELINE_HOST_DEVICE Lane(const BlockGroup& block, const beeline::Context& ctx, const Lanes& lanes, unsigned lane,
                           unsigned count, std::uint64_t done)
      : block_(block), ctx_(ctx), lanes_(lanes), first_(lane), stride_(count),
        chunks_((lanes.ring.chunks - lane + count - 1) / count), arrived_(&lanes.arrived[lane].value),
        sequence_(done * lanes.ring.steps() * chunks_) {}

  /// One reduction of the lane's chunks.
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status reduce() {
    const std::uint32_t steps = lanes_.ring.steps();
    // Behind the last step the chunks that it brought are only waited for.
    for (std::uint32_t step = 0; step <= steps; ++step)
      for (std::uint32_t i = 0; i < chunks_; ++i) {
        const std::uint64_t number = sequence_ + std::uint64_t{step} * chunks_ + i + 1;
        if (step > 0)
          if (const beeline::Status status = await(number - chunks_); status != beeline::Status::ok) return status;
        if (step < steps) pass_on(lanes_.ring.transfer(step, first_ + i * stride_), number);
      }
    sequence_ += std::uint64_t{steps} * chunks_;
    return beeline::Status::ok;
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status await(std::uint64_t number) const {
    return beeline::wait(block_, ctx_, arrived_, beeline::Compare::greater_equal, number, lanes_.ring.previous());
  }

  BEELINE_HOST_DEVICE void pass_on(const Transfer& transfer, std::uint64_t number) const {
    const Ring& ring = lanes_.ring;
    float* mine = lanes_.data + transfer.sends.first;
    float* there = transfer.reduces ? lanes_.inbox + transfer.inbox : mine;
    if (transfer.step == 0 || transfer.step >= ring.ranks) {
      beeline::put(block_, ctx_, there, mine, transfer.sends.count, ring.next());
    } else {
      // What arrived in the step before lies one part further back. The whole sum, which the first step of the
      // all-gather sends, is this rank's result too.
      const float* arrived = lanes_.inbox + transfer.inbox - ring.part_elements;
      store_sum(block_.thread_rank(), block_.size(),
                {mine, arrived, ctx_.at(there, ring.next()), transfer.reduces ? nullptr : mine, transfer.sends.count});
    }
    beeline::signal(block_, ctx_, arrived_, number, ring.next());
  }

  const BlockGroup& block_;
  const beeline::Context& ctx_;
  const Lanes& lanes_;
  const std::uint32_t first_, stride_, chunks_;
  std::uint64_t* arrived_;
  std::uint64_t sequence_;
};

struct RunLanes {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, Lanes lanes, std::uint64_t done,
                                      int reductions) const {
    Lane lane(grid.block(), ctx, lanes, grid.block_rank(), grid.blocks(), done);
    for (int reduction = 0; reduction < reductions; ++reduction)
      if (lane.reduce() != beeline::Status::ok) return;
  }
};

class Device final : public Scheme {
 public:
  explicit Device(Vectors& vectors)
      : Scheme(vectors), ring_(vectors.ring(vectors.shape().put_chunk_bytes)),
        lanes_(vectors.agree_on_lanes(
            ring_, gpu_lanes, beeline::resident_blocks<RunLanes, Lanes, std::uint64_t, int>(world(), block_threads))),
        arrived_(world(), lanes_) {}

  void run(int reductions) override {
    if (ring_.ranks == 1) return;
    beeline::launch(world(), {.blocks = lanes_, .threads = block_threads, .waits = true}, RunLanes{},
                    Lanes{ring_, vectors().data(), vectors().inbox(), arrived_.data()}, done_, reductions);
    done_ += static_cast<std::uint64_t>(reductions);
    world().synchronize();
  }
  const Ring& ring() const override { return ring_; }
  unsigned lanes() const override { return lanes_; }

 private:
  Ring ring_;
  unsigned lanes_;
  beeline::SymmetricArray<beeline::PaddedWord> arrived_;
  std::uint64_t done_ = 0;
};

}  // namespace

SchemeInfo device() {
  return SchemeInfo::of<Device>(
      {"device", "one kernel for all reductions: each block puts and signals its own chunks", "device/peer/signal"});
}

}  // namespace ring_reduction
