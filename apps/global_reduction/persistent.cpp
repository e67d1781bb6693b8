// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method persistent: one kernel for all reductions, as inside an iterative solver that never leaves the device. After
/// a grid barrier the first block all-reduces; a second barrier makes the result visible to all blocks.

#include "beeline/collectives/allreduce.hpp"
#include "beeline/host/collectives.hpp"
#include "method.hpp"

namespace global_reduction {

namespace {

struct ReduceAgainAndAgain {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const beeline::Context& ctx, Input input,
                                      beeline::CollectiveChannel channel, double* sums, int reductions) const {
    for (int reduction = 0; reduction < reductions; ++reduction) {
      store_block_sum(grid, input);
      if (grid.sync(ctx) != beeline::Status::ok) return;
      if (grid.block_rank() == 0 && reduce_blocks(grid, ctx, input, channel, sums) != beeline::Status::ok) return;
      if (grid.sync(ctx) != beeline::Status::ok) return;
    }
  }

 private:
  /// Called by one block: writes this rank's sum to sums[0] and the sum of all ranks to sums[1].
  template <class Grid>
  [[nodiscard]] BEELINE_HOST_DEVICE static beeline::Status reduce_blocks(const Grid& grid, const beeline::Context& ctx,
                                                                         const Input& input,
                                                                         const beeline::CollectiveChannel& channel,
                                                                         double* sums) {
    const double total = total_of_blocks(grid, input);
    if (grid.block().thread_rank() == 0) sums[0] = total;
    grid.block().sync();
    beeline::Session session(grid.block(), ctx, channel);
    return beeline::allreduce(session, sums + 1, static_cast<const double*>(sums), 1, beeline::Reduction::sum);
  }
};

class Persistent final : public Method {
 public:
  explicit Persistent(Values& values)
      : Method(values), collectives_(world(), {.sessions = 1}),
        blocks_(values.blocks<ReduceAgainAndAgain, Input, beeline::CollectiveChannel, double*, int>()) {}

  void run(int reductions) override {
    beeline::launch(world(), {.blocks = blocks_, .threads = block_threads, .waits = true}, ReduceAgainAndAgain{},
                    values().input(), collectives_.channel(), values().local(), reductions);
    world().synchronize();
  }

 private:
  beeline::Collectives collectives_;
  unsigned blocks_;
};

}  // namespace

MethodInfo persistent() {
  return MethodInfo::of<Persistent>({"persistent", "one kernel for all reductions, with grid barriers"});
}

}  // namespace global_reduction
