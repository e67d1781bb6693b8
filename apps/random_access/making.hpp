// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How a CPU thread that shares its rank's words with no other thread makes numbers: in the methods with rounds, and in
/// the baseline.

#include "table.hpp"

namespace random_access {

/// Makes a number for each of `next`, and stores it at the end of its owner's box. Meanwhile prefetches the words of
/// `next`, which the caller applies afterwards: the loads overlap with the arithmetic.
///   ends    [ranks] where the owner's next number is stored; moved on
///   number  the number before the first
///   next    `first` nullptr: nothing to prefetch
/// Returns the last number.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint64_t make_into(std::uint64_t** ends, const Target& target,
                                                                 std::uint64_t number, const Numbers& next) {
  const Target own = target;  // a copy: the compiler assumes that stores of numbers may change the original
  const Layout layout = own.layout;
  for (std::uint64_t i = 0; i < next.count; ++i) {
    number = next_number(number);
    *ends[layout.owner(layout.index_of(number))]++ = number;
    if (next.first != nullptr) prefetch_word(own, next.first[i]);
  }
  return number;
}

}  // namespace random_access
