// SPDX-License-Identifier: Apache-2.0
// expect: a 32- or 64-bit integer
#include "beeline/device/atomic.hpp"

beeline::Status misuse(const beeline::Context& ctx, float* value, float& before) {
  return beeline::atomic_fetch_add(ctx, value, 1.0f, 1, before);
}
