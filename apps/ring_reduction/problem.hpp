// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The problem: each rank has a vector of float32, which the sum over the ranks replaces.

#include <cstddef>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "common/initial_value.hpp"
#include "common/memory_budget.hpp"
#include "vectors.hpp"

namespace ring_reduction {

using apps::initial_value;
using apps::largest_value;

/// Parses bytes of a rank's vector, with or without K, M, G (powers of 1024), into its count of float32. Throws
/// invalid_argument naming the text.
[[nodiscard]] std::size_t parse_size(const std::string& text);
/// The same for several vectors, separated by commas.
[[nodiscard]] std::vector<std::size_t> parse_sizes(const std::string& text);
/// `shape` with chunks of each of the sizes in `text`, separated by commas; unchanged if it is empty.
[[nodiscard]] std::vector<Shape> parse_chunks(const std::string& text, const Shape& shape);

/// Number of reductions in place, one after another, that keep the sums within the range of float32: each reduction
/// multiplies the values by the number of ranks.
[[nodiscard]] int reductions_in_range(int ranks);
/// Number of reductions after which sums are still whole numbers that float32 represents.
[[nodiscard]] int exact_reductions(int ranks);

/// Sets the heap sizes of `config` for a vector of `count` elements; throws as `apps::fit` does.
///   verify  rank 0 also holds the serial reference
void fit(beeline::Config& config, std::size_t count, bool verify, const apps::Machine& machine);

}  // namespace ring_reduction
