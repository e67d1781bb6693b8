// SPDX-License-Identifier: Apache-2.0
// expect: ignoring return value
#include "beeline/device/group.hpp"
#include "beeline/device/signal.hpp"

void misuse(const beeline::Thread& group, const beeline::Context& ctx, std::uint64_t* signal) {
  beeline::wait(group, ctx, signal, beeline::Compare::equal, 1);
}
