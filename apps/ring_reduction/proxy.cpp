// SPDX-License-Identifier: Apache-2.0
/// @file
/// Schemes proxy and proxy_device: one kernel for all reductions, which computes the sums and moves nothing. The blocks
/// of a lane wait for the signal of a chunk and add the chunk to their own; the last of them posts the sum's transfer
/// and its signal to the host's engine, or to one of several service blocks of the device. Source: seed 003, GPU host
/// networking and ComP-Net.

#include <algorithm>
#include <memory>
#include <vector>

#include "beeline/control/post.hpp"
#include "beeline/host/command_queues.hpp"
#include "lane.hpp"

namespace ring_reduction {

namespace {

constexpr unsigned most_service_blocks = 16;

template <beeline::EngineKind engine>
struct PostingSender {
  /// With a host engine, chunks are long, and several blocks add each, since its copy waits for the sum. With service
  /// blocks of the device, chunks are short, and many of them are moved at a time.
  static constexpr LaneShape on_gpus = engine == beeline::EngineKind::host ? LaneShape{16, 8} : LaneShape{32, 1};
  beeline::CommandQueuesView engines[most_service_blocks];
  unsigned count;  ///< of them

  template <class Block>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status send(const Block& block, const beeline::Context& ctx,
                                                         const Lanes& all, const Transfer& transfer, const Place& place,
                                                         std::uint64_t number) const {
    if (!all.prepare(block, transfer, place.member)) return beeline::Status::ok;
    return beeline::post_put_signal(block, ctx, all.destination(transfer), all.source(transfer), transfer.sends.count,
                                    &all.arrived[place.lane].value, number, all.ring.next(),
                                    engines[place.lane % count].queue(place.lane / count));
  }
};

template <beeline::EngineKind engine>
class Proxy final : public LaneScheme<PostingSender<engine>> {
 public:
  explicit Proxy(Vectors& vectors)
      : LaneScheme<PostingSender<engine>>(vectors, engine == beeline::EngineKind::host
                                                       ? vectors.post_chunk_bytes()
                                                       : vectors.shape().service_chunk_bytes) {
    const unsigned lanes = this->lanes().lanes;
    const unsigned engines = engine == beeline::EngineKind::host ? 1 : std::min(vectors.service_blocks(), lanes);
    for (unsigned i = 0; i < engines; ++i)
      queues_.push_back(std::make_unique<beeline::CommandQueues>(vectors.world(), (lanes + engines - 1) / engines,
                                                                 beeline::CommandQueueOptions{.engine = engine}));
  }
  unsigned service_blocks() const override {
    return engine == beeline::EngineKind::device ? static_cast<unsigned>(queues_.size()) : 0;
  }

 private:
  PostingSender<engine> sender() const override {
    PostingSender<engine> sender{};
    for (const auto& each : queues_) sender.engines[sender.count++] = each->channel();
    return sender;
  }

  std::vector<std::unique_ptr<beeline::CommandQueues>> queues_;  ///< of each engine
};

}  // namespace

SchemeInfo proxy() {
  return SchemeInfo::of<Proxy<beeline::EngineKind::host>>(
      {"proxy", "one kernel for all reductions: blocks add chunks, and post them to the rank's engine",
       "proxy/copy_engine/signal"});
}

SchemeInfo proxy_device() {
  return SchemeInfo::of<Proxy<beeline::EngineKind::device>>(
      {"proxy_device", "as proxy, but blocks of the device serve the posts", "proxy/peer/signal"});
}

}  // namespace ring_reduction
