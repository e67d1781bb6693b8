// SPDX-License-Identifier: Apache-2.0
// expect: no matching function for call to .*put
#include "beeline/device/group.hpp"
#include "beeline/device/put_get.hpp"

void misuse(const beeline::Thread& group, const beeline::Context& ctx, double* to, const float* from) {
  beeline::put(group, ctx, to, from, 1, 1);
}
