// SPDX-License-Identifier: Apache-2.0
/// @file
/// Scheme proxy: one kernel for all reductions, which computes the sums and moves nothing. Each block waits for the
/// signal of a chunk, adds the chunk to its own, and posts the sum's transfer and its signal to the rank's engine.
/// Source: seed 003, GPU host networking.

#include "beeline/control/post.hpp"
#include "beeline/host/command_queues.hpp"
#include "lane.hpp"

namespace ring_reduction {

namespace {

struct PostingSender {
  /// Blocks that keep the copy engines busy: the sums are a small part of the time.
  static constexpr unsigned lanes = 16;
  beeline::CommandChannel queues;

  template <class Grid>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status send(const Grid& grid, const beeline::Context& ctx,
                                                         const Lanes& all, const Transfer& transfer,
                                                         std::uint64_t* signal, std::uint64_t number) const {
    const auto& block = grid.block();
    const std::uint32_t next = all.ring.next();
    const beeline::CommandQueue queue = queues.queue(grid.block_rank());
    all.prepare(block, transfer);
    const beeline::Status status = beeline::post_put(
        block, ctx, all.destination(transfer), all.data + transfer.sends.first, transfer.sends.count, next, queue);
    return status == beeline::Status::ok ? beeline::post_signal(block, ctx, signal, number, next, queue) : status;
  }
  /// The next reduction changes what the engine may still send.
  template <class Grid>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status end(const Grid& grid, const beeline::Context& ctx) const {
    return beeline::flush(grid.block(), ctx, queues.queue(grid.block_rank()));
  }
};

class Proxy final : public LaneScheme<PostingSender> {
 public:
  explicit Proxy(Vectors& vectors) : LaneScheme(vectors, vectors.shape().post_chunk_bytes), queues_(world(), lanes()) {}

 private:
  PostingSender sender() const override { return {queues_.channel()}; }

  beeline::CommandQueues queues_;
};

}  // namespace

SchemeInfo proxy() {
  return SchemeInfo::of<Proxy>(
      {"proxy", "one kernel for all reductions: each block adds its chunks, and posts them to the rank's engine",
       "proxy/copy_engine/signal"});
}

}  // namespace ring_reduction
