// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method device: one kernel for all iterations, whose blocks put their results. Source: seed 003, intra-kernel
/// networking.

#include "beeline/device/put_get.hpp"
#include "persistent.hpp"

namespace jacobi {

namespace {

struct Putting {
  static constexpr int segment_quads = block_threads;  // 4 KB, one quad for each thread

  template <class Grid>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status send(const Grid& grid, const beeline::Context& ctx,
                                                         const Message& message) const {
    return beeline::put_signal(grid.block(), ctx, message.destination, message.source, message.count, message.signal,
                               message.tag, message.peer);
  }
  template <class Grid>
  [[nodiscard]] BEELINE_HOST_DEVICE beeline::Status end(const Grid&, const beeline::Context&) const {
    return beeline::Status::ok;
  }
};

class Device final : public Persistent<Putting> {
 public:
  using Persistent::Persistent;

 private:
  Putting sender() const override { return {}; }
};

}  // namespace

MethodInfo device() {
  return MethodInfo::of<Device>(
      {"device", "one kernel for all iterations: blocks put segments of the outermost rows, and wait for them",
       "device/peer/signal"});
}

}  // namespace jacobi
