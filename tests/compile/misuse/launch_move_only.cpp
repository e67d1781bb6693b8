// SPDX-License-Identifier: Apache-2.0
// expect: they must be trivially copyable
#include "beeline/host/launch.hpp"

struct MoveOnly {
  MoveOnly(MoveOnly&&) = default;
  float* data;
};

struct Fill {
  template <class Grid>
  void operator()(Grid&, const beeline::Context&, const MoveOnly&) const {}
};

void misuse(beeline::World& world, MoveOnly& argument) { beeline::launch(world, {}, Fill{}, argument); }
