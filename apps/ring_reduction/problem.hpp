// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The problem: a vector of float32 on each rank, to be replaced by the sum over the ranks.

#include <cstddef>
#include <cstdint>
#include <string>

#include "beeline/core/config.hpp"
#include "beeline/core/macros.hpp"
#include "common/memory_budget.hpp"

namespace ring_reduction {

/// Parses bytes of a rank's vector, with or without K, M, G (powers of 1024), into its count of float32. Throws
/// invalid_argument naming the text.
[[nodiscard]] std::size_t parse_size(const std::string& text);

/// Largest magnitude of a rank's initial values: whole numbers, so that sums over 64 ranks are exact in any order.
inline constexpr int largest_value = 64;

/// The value of element `index` on `rank` before the first reduction, in data set `set`.
BEELINE_HOST_DEVICE inline float initial_value(std::uint32_t set, std::uint32_t rank, std::size_t index) {
  std::uint64_t bits = (std::uint64_t{set} << 32 | rank) * 0x9e3779b97f4a7c15u + index;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
  return static_cast<float>(static_cast<int>((bits >> 32) % (2 * largest_value + 1)) - largest_value);
}

/// Reductions in place, one after another, before a sum may leave the range of float32: each multiplies the values by
/// the number of ranks.
[[nodiscard]] int reductions_in_range(int ranks);
/// Those after which sums are still whole numbers that float32 holds.
[[nodiscard]] int exact_reductions(int ranks);

/// Gives the world of `config` the heaps that the problem needs; throws as `apps::fit`.
///   verify  rank 0 holds the serial reference too
void fit(beeline::Config& config, std::size_t count, bool verify, const apps::Machine& machine);

}  // namespace ring_reduction
