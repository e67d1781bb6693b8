// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The problem: values on each rank, whose sum over all ranks every rank is to have.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "common/initial_value.hpp"
#include "common/memory_budget.hpp"

namespace global_reduction {

using apps::initial_value;

/// Parses numbers of values of a rank: numbers separated by commas, with or without K, M, G (powers of 1024), each at
/// least 1. Throws invalid_argument naming what is wrong.
[[nodiscard]] std::vector<std::size_t> parse_counts(const std::string& text);

/// The serial reference: a loop over ranks and values, sharing no code with the methods; threads only finish sooner.
[[nodiscard]] double serial_sum(std::size_t count, int ranks, std::uint32_t set, int threads);

/// Gives the world of `config` the heaps that `count` values a rank need; throws as `apps::fit`.
void fit(beeline::Config& config, std::size_t count, const apps::Machine& machine);

}  // namespace global_reduction
