// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The problem: values on each rank, whose sum over all ranks every rank is to have.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/core/macros.hpp"
#include "common/memory_budget.hpp"

namespace global_reduction {

/// Parses numbers of values of a rank: numbers separated by commas, with or without K, M, G (powers of 1024), each at
/// least 1. Throws invalid_argument naming what is wrong.
[[nodiscard]] std::vector<std::size_t> parse_counts(const std::string& text);

/// The value of element `index` on `rank` in data set `set`: a whole number, so that sums in float64 are exact in any
/// order.
BEELINE_HOST_DEVICE inline float initial_value(std::uint32_t set, std::uint32_t rank, std::size_t index) {
  std::uint64_t bits = (std::uint64_t{set} << 32 | rank) * 0x9e3779b97f4a7c15u + index;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
  return static_cast<float>(static_cast<int>((bits >> 32) % 129) - 64);
}

/// The serial reference: a loop over ranks and values, sharing no code with the methods; threads only finish sooner.
[[nodiscard]] double serial_sum(std::size_t count, int ranks, std::uint32_t set, int threads);

/// Gives the world of `config` the heaps that `count` values a rank need; throws as `apps::fit`.
void fit(beeline::Config& config, std::size_t count, const apps::Machine& machine);

}  // namespace global_reduction
