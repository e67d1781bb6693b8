// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The problem: a vector of float32 on each rank, to be replaced by the sum over the ranks.

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

/// Reductions in place, one after another, before a sum may leave the range of float32: each multiplies the values by
/// the number of ranks.
[[nodiscard]] int reductions_in_range(int ranks);
/// Those after which sums are still whole numbers that float32 holds.
[[nodiscard]] int exact_reductions(int ranks);

/// Gives the world of `config` the heaps that a vector of `count` elements needs; throws as `apps::fit`.
///   verify  rank 0 holds the serial reference too
void fit(beeline::Config& config, std::size_t count, bool verify, const apps::Machine& machine);

}  // namespace ring_reduction
