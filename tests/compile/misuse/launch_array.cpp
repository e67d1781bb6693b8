// SPDX-License-Identifier: Apache-2.0
// expect: they must be trivially copyable
#include "beeline/host/launch.hpp"

struct Fill {
  template <class Grid>
  void operator()(Grid&, const beeline::Context&, float*) const {}
};

void misuse(beeline::World& world, const beeline::SymmetricArray<float>& array) {
  beeline::launch(world, {}, Fill{}, array);
}
