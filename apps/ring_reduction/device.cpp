// SPDX-License-Identifier: Apache-2.0
/// @file
/// Scheme device: one kernel for all reductions, without the CPU. Each block waits for the signal of a chunk, adds it
/// to its own on the way to the next rank's inbox (in the all-gather it copies it there, straight into the vector), and
/// signals that. Source: seed 003, intra-kernel communication; seed 000 section 5.8.1 (persistent threads).

#include "beeline/device/put_get.hpp"
#include "lane.hpp"

namespace ring_reduction {

namespace {

struct StoringSender {
  /// Blocks that saturate a link, with what the sums read beside it.
  static constexpr unsigned lanes = 32;

  template <class Grid>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status send(const Grid& grid, const beeline::Context& ctx,
                                                         const Lanes& all, const Transfer& transfer,
                                                         std::uint64_t* signal, std::uint64_t number) const {
    const auto& block = grid.block();
    const std::uint32_t next = all.ring.next();
    float *mine = all.data + transfer.sends.first, *there = all.destination(transfer);
    // The whole sum, which the first step of the all-gather sends, is this rank's result too.
    if (all.sends_sum(transfer))
      store_sum(block.thread_rank(), block.size(),
                {mine, all.arrived_before(transfer), ctx.at(there, next), transfer.reduces ? nullptr : mine,
                 transfer.sends.count});
    else
      beeline::put(block, ctx, there, mine, transfer.sends.count, next);
    return beeline::signal(block, ctx, signal, number, next);
  }
  template <class Grid>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status end(const Grid&, const beeline::Context&) const {
    return beeline::Status::ok;
  }
};

class Device final : public LaneScheme<StoringSender> {
 public:
  explicit Device(Vectors& vectors) : LaneScheme(vectors, vectors.shape().put_chunk_bytes) {}

 private:
  StoringSender sender() const override { return {}; }
};

}  // namespace

SchemeInfo device() {
  return SchemeInfo::of<Device>(
      {"device", "one kernel for all reductions: each block puts and signals its own chunks", "device/peer/signal"});
}

}  // namespace ring_reduction
