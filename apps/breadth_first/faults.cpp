// SPDX-License-Identifier: Apache-2.0
#include "faults.hpp"

#include <fmt/format.h>

namespace breadth_first {

std::string Faults::text() const {
  static constexpr const char* rules[] = {"vertices that no path of the tree joins to the root",
                                          "vertices that are not one level below their parent",
                                          "edges whose ends are more than one level apart",
                                          "edges with one end in the tree", "vertices without an edge to their parent"};
  std::string all;
  for (std::size_t rule = 0; rule < of_rule.size(); ++rule)
    if (of_rule[rule] != 0)
      all += fmt::format("{}rule {}: {} {}", all.empty() ? "" : "; ", rule + 1, of_rule[rule], rules[rule]);
  return all;
}

}  // namespace breadth_first
