// SPDX-License-Identifier: Apache-2.0
// expect: ignoring return value
#include "beeline/device/atomic.hpp"

void misuse(const beeline::Context& ctx, std::uint64_t* counter, std::uint64_t& ticket) {
  beeline::atomic_fetch_add(ctx, counter, 1, 1, ticket);
}
