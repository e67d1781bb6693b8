// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method in_kernel: one kernel for each reduction. The last block, found by a counter, adds up the blocks' sums and
/// all-reduces the total with the last blocks of the other ranks. Source: seed 000 section 6.9.2.

#include "beeline/collectives/allreduce.hpp"
#include "beeline/host/collectives.hpp"
#include "common/launch_window.hpp"
#include "method.hpp"

namespace global_reduction {

namespace {

struct SumAndReduce {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, Input input,
                                      beeline::CollectiveChannel channel, double* local, double* global) const {
    if (!sum_in_last_block(grid, input, local)) return;
    beeline::Session session(grid.block(), ctx, channel);
    static_cast<void>(
        beeline::allreduce(session, global, static_cast<const double*>(local), 1, beeline::Reduction::sum));
  }
};

class InKernel final : public Method {
 public:
  explicit InKernel(Values& values)
      : Method(values), collectives_(world(), {.sessions = 1}), window_(world()),
        blocks_(values.blocks<SumAndReduce, Input, beeline::CollectiveChannel, double*, double*>()) {}

  void run(int reductions) override {
    for (int reduction = 0; reduction < reductions; ++reduction) {
      beeline::launch(world(), {.blocks = blocks_, .threads = block_threads, .waits = true}, SumAndReduce{},
                      values().input(), collectives_.channel(), values().local(), values().global());
      window_.advance();
    }
    world().synchronize();
  }

 private:
  beeline::Collectives collectives_;
  apps::LaunchWindow window_;
  unsigned blocks_;
};

}  // namespace

MethodInfo in_kernel() {
  return MethodInfo::of<InKernel>({"in_kernel", "one kernel: its last block adds up the blocks, and all-reduces"});
}

}  // namespace global_reduction
