// SPDX-License-Identifier: Apache-2.0
// expect: a scalar of 1, 2, 4 or 8 bytes
#include "beeline/device/put_get.hpp"

struct Pair {
  double first, second;
};

void misuse(const beeline::Context& ctx, Pair* pair) { beeline::put_value(ctx, pair, Pair{1, 2}, 1); }
