// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The problem: each rank holds values, and every rank needs their sum over all ranks.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "common/initial_value.hpp"
#include "common/memory_budget.hpp"

namespace global_reduction {

using apps::initial_value;

/// Parses a list of numbers of values of a rank: separated by commas, with or without K, M, G (powers of 1024), each at
/// least 1. Throws invalid_argument naming what is wrong.
[[nodiscard]] std::vector<std::size_t> parse_counts(const std::string& text);

/// The serial reference: a loop over ranks and values, without code shared with the methods; threads only speed it up.
[[nodiscard]] double serial_sum(std::size_t count, int ranks, std::uint32_t set, int threads);

/// Sets the heap sizes of `config` for `count` values of each rank; throws as `apps::fit` does.
void fit(beeline::Config& config, std::size_t count, const apps::Machine& machine);

}  // namespace global_reduction
