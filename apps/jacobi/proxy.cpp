// SPDX-License-Identifier: Apache-2.0
/// @file
/// Methods proxy and proxy_device: one kernel for all iterations, which moves no data itself. Blocks post their
/// results, and the signals, to an engine of the host or of the device. Source: seed 003, GPU host networking and
/// ComP-Net.

#include <algorithm>

#include "beeline/control/post.hpp"
#include "beeline/host/command_queues.hpp"
#include "persistent.hpp"

namespace jacobi {

namespace {

struct Posting {
  static constexpr int segment_quads = 4 * block_threads;  // 16 KB: each costs the engine a copy and a signal
  beeline::CommandQueuesView queues;

  template <class Grid>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status send(const Grid& grid, const beeline::Context& ctx,
                                                         const Message& message) const {
    const auto& block = grid.block();
    const beeline::CommandQueue queue = queues.queue(grid.block_rank());
    return beeline::post_put_signal(block, ctx, message.destination, message.source, message.count, message.signal,
                                    message.tag, message.peer, queue);
  }
  /// When the kernel has ended, the host may refill the fields or read them.
  template <class Grid>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status end(const Grid& grid, const beeline::Context& ctx) const {
    return grid.block_rank() < queues.queues ? beeline::quiet(grid.block(), ctx, queues.queue(grid.block_rank()))
                                             : beeline::Status::ok;
  }
};

template <beeline::EngineKind engine>
class Proxy final : public Persistent<Posting> {
 public:
  explicit Proxy(Domain& domain)
      : Persistent(domain), queues_(world(), std::min(most_queues, sides * segments()), {.engine = engine}) {}

 private:
  static constexpr unsigned most_queues = 8;
  Posting sender() const override { return {queues_.channel()}; }

  beeline::CommandQueues queues_;
};

}  // namespace

MethodInfo proxy() {
  return MethodInfo::of<Proxy<beeline::EngineKind::host>>(
      {"proxy", "one kernel for all iterations: blocks post segments of the outermost rows to the rank's engine",
       "proxy/copy_engine/signal"});
}

MethodInfo proxy_device() {
  return MethodInfo::of<Proxy<beeline::EngineKind::device>>(
      {"proxy_device", "as proxy, but a block of the device serves the posts", "proxy/peer/signal"});
}

}  // namespace jacobi
