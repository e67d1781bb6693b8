// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method 1: the host computes a whole iteration, then moves planes through pinned host memory; nothing overlaps.
/// Source: seed 000 sections 3.2 and 4.4.

#include "beeline/host/staged_channel.hpp"
#include "halves.hpp"
#include "host_gosa.hpp"
#include "method.hpp"

namespace himeno {

namespace {

class HostStaged final : public Method {
 public:
  explicit HostStaged(Domain& domain)
      : Method(domain), shape_(domain.shape<UpdateHalf, Fields, Tiling, Sums, Planes, int, unsigned>()),
        tiling_(domain.tiling(shape_.blocks, domain.slab().planes)), channel_(world(), domain.plane_bytes(), 1),
        gosa_(domain) {}

  void iterate(int iterations, bool communicate) override {
    Step step{0, domain().take_tags(iterations), communicate};
    for (; step.iteration < iterations; ++step.iteration) {
      beeline::launch(world(), {.blocks = shape_.blocks, .threads = shape_.threads}, UpdateHalf{}, domain().fields(),
                      tiling_, domain().sums(), domain().all_planes(), step.iteration, 0u);
      if (communicate) gosa_.enqueue_sum(step, 1, shape_.blocks);
      world().synchronize();
      if (!communicate) continue;
      exchange_planes(step.iteration + 1);
      gosa_.exchange(step);
    }
    if (communicate) gosa_.finish({iterations - 1, step.first_tag, true});
  }

 private:
  /// Exchanges downwards, then upwards: each time a rank sends to one side and receives from the opposite side.
  void exchange_planes(int iteration) {
    float* p = domain().fields().pressure(iteration);
    for (unsigned side = 0; side < sides; ++side) {
      const Edge &to = domain().edges().side[side], &from = domain().edges().side[opposite(side)];
      channel_.send_receive(p + to.mine, peer_of(to), p + from.halo, peer_of(from), domain().plane_bytes());
    }
  }
  [[nodiscard]] static int peer_of(const Edge& edge) { return edge.open() ? static_cast<int>(edge.peer) : -1; }

  Shape shape_;
  Tiling tiling_;
  beeline::StagedChannel channel_;
  HostGosa gosa_;
};

}  // namespace

MethodInfo host_staged() {
  return MethodInfo::of<HostStaged>(
      {"host_staged", "the host computes, then exchanges planes through pinned host memory"});
}

}  // namespace himeno
