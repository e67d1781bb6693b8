// SPDX-License-Identifier: Apache-2.0
/// @file
/// Schemes proxy and proxy_device: one kernel for all reductions, which computes the sums and moves nothing. Each block
/// waits for the signal of a chunk, adds the chunk to its own, and posts the sum's transfer and its signal to an engine
/// of the host or of the device. Source: seed 003, GPU host networking and ComP-Net.

#include "beeline/control/post.hpp"
#include "beeline/host/command_queues.hpp"
#include "lane.hpp"

namespace ring_reduction {

namespace {

struct PostingSender {
  /// Blocks that keep the copy engines busy: the sums are a small part of the time.
  static constexpr unsigned lanes = 16;
  beeline::CommandQueuesView queues;

  template <class Grid>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status send(const Grid& grid, const beeline::Context& ctx,
                                                         const Lanes& all, const Transfer& transfer,
                                                         std::uint64_t* signal, std::uint64_t number) const {
    const auto& block = grid.block();
    const std::uint32_t next = all.ring.next();
    const beeline::CommandQueue queue = queues.queue(grid.block_rank());
    all.prepare(block, transfer);
    return beeline::post_put_signal(block, ctx, all.destination(transfer), all.data + transfer.sends.first,
                                    transfer.sends.count, signal, number, next, queue);
  }
  /// The next reduction changes what the engine may still send.
  template <class Grid>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status end(const Grid& grid, const beeline::Context& ctx) const {
    return beeline::flush(grid.block(), ctx, queues.queue(grid.block_rank()));
  }
};

template <beeline::EngineKind engine>
class Proxy final : public LaneScheme<PostingSender> {
 public:
  explicit Proxy(Vectors& vectors)
      : LaneScheme(vectors, vectors.shape().post_chunk_bytes), queues_(world(), lanes(), {.engine = engine}) {}

 private:
  PostingSender sender() const override { return {queues_.channel()}; }

  beeline::CommandQueues queues_;
};

}  // namespace

SchemeInfo proxy() {
  return SchemeInfo::of<Proxy<beeline::EngineKind::host>>(
      {"proxy", "one kernel for all reductions: each block adds its chunks, and posts them to the rank's engine",
       "proxy/copy_engine/signal"});
}

SchemeInfo proxy_device() {
  return SchemeInfo::of<Proxy<beeline::EngineKind::device>>(
      {"proxy_device", "as proxy, but a block of the device serves the posts", "proxy/peer/signal"});
}

}  // namespace ring_reduction
