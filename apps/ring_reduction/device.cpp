// SPDX-License-Identifier: Apache-2.0
/// @file
/// Scheme device: one kernel for all reductions, without the CPU. Each block waits for the signal of a chunk, stores
/// the sum of the chunk and its own values in the next rank's inbox (in the all-gather it copies the chunk directly to
/// the next rank's vector), and then signals the next rank. Source: seed 003, intra-kernel communication; seed 000
/// section 5.8.1 (persistent threads).

#include "lane.hpp"

namespace ring_reduction {

namespace {

struct StoringSender {
  /// Enough blocks to saturate a link, including the loads for the sums.
  static constexpr LaneShape on_gpus{32, 1};

  template <class Block>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status send(const Block& block, const beeline::Context& ctx,
                                                         const Lanes& all, const Transfer& transfer, const Place& place,
                                                         std::uint64_t number) const {
    all.store(block, ctx, transfer);
    return beeline::signal(block, ctx, &all.arrived[place.lane].value, number, all.ring.next());
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
