// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The values to be summed: whole numbers, so that sums over few ranks are exact in any order.

#include <cstddef>
#include <cstdint>

#include "beeline/core/macros.hpp"
#include "beeline/device/context.hpp"

namespace apps {

/// Largest magnitude of a rank's initial values.
inline constexpr int largest_value = 64;

/// The value of element `index` on `rank` in data set `set`.
BEELINE_HOST_DEVICE inline float initial_value(std::uint32_t set, std::uint32_t rank, std::size_t index) {
  std::uint64_t bits = (std::uint64_t{set} << 32 | rank) * 0x9e3779b97f4a7c15u + index;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
  return static_cast<float>(static_cast<int>((bits >> 32) % (2 * largest_value + 1)) - largest_value);
}

/// A kernel that fills a rank's `values` with data set `set`.
struct Fill {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, float* values, std::size_t count,
                                      std::uint32_t set) const {
    for (std::size_t i = grid.thread_rank(); i < count; i += grid.size()) values[i] = initial_value(set, ctx.rank, i);
  }
};

}  // namespace apps
