// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What can be wrong with a tree.

#include <array>
#include <cstdint>
#include <string>

namespace breadth_first {

/// Violations of the rules, summed over all ranks; rule n at index n - 1.
struct Faults {
  std::array<std::uint64_t, 5> of_rule{};

  [[nodiscard]] bool none() const { return of_rule == std::array<std::uint64_t, 5>{}; }
  /// What is wrong, as "rule 3: 12 edges whose ends are more than one level apart"; empty without faults.
  [[nodiscard]] std::string text() const;
};

}  // namespace breadth_first
