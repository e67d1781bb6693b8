// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Extended deadlines of waits for ranks that may wait themselves.

#include <cstdint>

#include "beeline/device/context.hpp"

namespace beeline::detail {

/// A context whose deadline is extended by `steps` × min(deadline / 40, 0.1 s). `steps`: hops between the waiting rank
/// and the rank that fails, so a rank that waits for the failing rank directly reports first.
[[nodiscard]] BEELINE_HOST_DEVICE inline Context extend_deadline(const Context& ctx, std::uint32_t steps) {
  const std::uint64_t quarter = ctx.deadline_ns / 4, most = 1'000'000'000;
  Context longer = ctx;
  longer.deadline_ns += (quarter < most ? quarter : most) * steps / 10;
  return longer;
}
/// Steps of the waits that end last.
inline constexpr std::uint32_t most_extension_steps = 20;

}  // namespace beeline::detail
