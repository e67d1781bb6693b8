// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Deadlines of waits for ranks that wait themselves.

#include <algorithm>
#include <cstdint>

#include "beeline/device/context.hpp"

namespace beeline::detail {

/// A context whose waits last longer, so that whoever waits for the culprit itself names it first: for each of `steps`
/// between the two by a tenth of a quarter of the deadline, or of a second, whichever is less.
[[nodiscard]] inline Context extend_deadline(const Context& ctx, std::uint32_t steps) {
  Context longer = ctx;
  longer.deadline_ns += std::min<std::uint64_t>(ctx.deadline_ns / 4, 1'000'000'000) * steps / 10;
  return longer;
}
/// Steps of those whose wait ends last.
inline constexpr std::uint32_t most_extension_steps = 20;

}  // namespace beeline::detail
