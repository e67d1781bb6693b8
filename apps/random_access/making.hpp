// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How a CPU thread that shares its rank's words with no other thread makes and applies numbers.

#include "table.hpp"

namespace random_access {

/// Makes numbers, and stores each at the end of its owner's box. Meanwhile applies numbers that have arrived: the loads
/// of their words overlap with the arithmetic.
///   ends     [ranks] where the owner's next number is stored; moved on. Boxes have `box_words` words: what lies behind
///            their last number is overwritten
///   number   the number before the first
///   count    how many are made
///   arrived  numbers whose words this rank owns; all are applied
/// Returns the last number.
[[nodiscard]] std::uint64_t make_and_apply(std::uint64_t** ends, const Target& target, std::uint64_t number,
                                           std::uint64_t count, Numbers arrived);

/// Prefetches the first of numbers that are applied soon.
void prefetch_numbers(Numbers arrived);

/// Applies numbers whose words this rank owns.
void apply_alone(const Target& target, Numbers arrived);

}  // namespace random_access
