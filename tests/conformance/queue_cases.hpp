// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Definitions that cases of command queues, triggered operations and tasks share.

#include <cstdint>
#include <memory>

#include "tests/conformance/rank_test.hpp"

namespace beeline_test {

/// Skips the case if the engine cannot reach the memory that this rank's kernels name in commands.
inline void need_reach(const RankTest& test, const beeline::World& world) {
  test.skip_if(world.mixed(), "the engine of a host rank does not reach GPU memory");
}
inline void need_one_kind(RankTest& test) { test.skip_if(test.world().mixed(), "ranks of both kinds have no tasks"); }

/// Defines a case for each consumer of queues: `engine` in its body.
#define POST_CASE(name, least_ranks)                                                             \
  void name(RankTest& test, beeline::EngineKind engine);                                         \
  BEELINE_CASE(post, name##_by_host, least_ranks) { name(test, beeline::EngineKind::host); }     \
  BEELINE_CASE(post, name##_by_device, least_ranks) { name(test, beeline::EngineKind::device); } \
  void name(RankTest& test, beeline::EngineKind engine)

/// Skips the case unless all ranks are on one node, as software adapters require.
inline void need_one_node(RankTest& test) {
  need_reach(test, test.world());
  test.skip_if(test.on_several_nodes(), "adapters need memory that all members share");
}
/// Whether kernels of a rank reach its peers only by an engine.
inline bool is_routed(RankTest& test) { return test.world().config().engines != nullptr && test.size() > 1; }

/// Defines a case of a software adapter's format, whose rings either kind of engine serves: `engine` in its body.
#define ADAPTER_CASE(format, name, least_ranks)                                                          \
  void name(RankTest& test, beeline::EngineKind engine);                                                 \
  BEELINE_CASE(post, format##_##name##_by_host, least_ranks) {                                           \
    need_one_node(test);                                                                                 \
    name(test, beeline::EngineKind::host);                                                               \
  }                                                                                                      \
  BEELINE_CASE(post, format##_##name##_by_device, least_ranks) {                                         \
    need_one_node(test);                                                                                 \
    test.skip_if(is_routed(test), "a block of the device does not reach peers that only engines reach"); \
    name(test, beeline::EngineKind::device);                                                             \
  }                                                                                                      \
  void name(RankTest& test, beeline::EngineKind engine)

struct NoKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid&, const beeline::Context&, DeviceReport*, std::uint32_t) const {}
};
inline void launch_nothing(beeline::World& world, const beeline::LaunchOptions& options) {
  beeline::launch(world, options, NoKernel{}, static_cast<DeviceReport*>(nullptr), std::uint32_t{0});
}

/// Grids that fill the device more than once, on a stream of their own, beside the case's own work.
class FullDevice {
 public:
  explicit FullDevice(RankTest& test) : world_(test.world()), stream_(world_.make_stream()) {
    options_ = test.shape(test.on_gpu() ? 4096 : 16, false);
    options_.stream = stream_.get();
  }
  void launch() { launch_nothing(world_, options_); }
  void synchronize() { world_.synchronize(*stream_); }

 private:
  beeline::World& world_;
  const std::unique_ptr<beeline::Stream> stream_;
  beeline::LaunchOptions options_;
};

}  // namespace beeline_test
