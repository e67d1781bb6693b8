// SPDX-License-Identifier: Apache-2.0
// expect: the kernel has no operator
#include "beeline/host/launch.hpp"

struct Fill {
  template <class Grid>
  void operator()(Grid&, const beeline::Context&, float*, int) const {}
};

void misuse(beeline::World& world, float* data) { beeline::launch(world, {}, Fill{}, data); }
