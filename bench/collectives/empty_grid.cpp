// SPDX-License-Identifier: Apache-2.0
#include "collectives/empty_grid.hpp"

#include "beeline/host/launch.hpp"

namespace beeline::bench {

namespace {

struct EmptyKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid&, const Context&) const {}
};

}  // namespace

void launch_empty_grid(World& world, unsigned blocks) {
  launch(world, {.blocks = blocks, .threads = 32, .waits = true}, EmptyKernel{});
}

}  // namespace beeline::bench
