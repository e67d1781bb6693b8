// SPDX-License-Identifier: Apache-2.0
// expect: they must be trivially copyable
#include <vector>

#include "beeline/host/launch.hpp"

struct Sum {
  template <class Grid>
  void operator()(Grid&, const beeline::Context&, std::vector<int>) const {}
};

void misuse(beeline::World& world) { beeline::launch(world, {}, Sum{}, std::vector<int>(3)); }
