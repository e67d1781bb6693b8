// SPDX-License-Identifier: Apache-2.0
// expect: a 32- or 64-bit integer
#include "beeline/device/atomic.hpp"

void misuse(const beeline::Context& ctx, float* value) { beeline::atomic_fetch_add(ctx, value, 1.0f, 1); }
