// SPDX-License-Identifier: Apache-2.0
// expect: ignoring return value
#include "beeline/device/signal.hpp"

void misuse(const beeline::Context& ctx, std::uint64_t* signal, std::uint64_t& before) {
  beeline::exchange(ctx, signal, 0, before);
}
