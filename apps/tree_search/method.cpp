// SPDX-License-Identifier: Apache-2.0
#include "method.hpp"

#include <algorithm>

#include "common/sampling.hpp"

namespace tree_search {

const std::vector<MethodInfo>& methods() {
  static const std::vector<MethodInfo> all{bulk(), task()};
  return all;
}

Counts Problem::take_counts() {
  Counts mine{}, sum{};
  world_.copy(&mine, counts(), sizeof mine);
  world_.copy(counts(), &sum, sizeof sum);
  for (const Counts& each : apps::from_all(world_, mine)) {
    sum.nodes += each.nodes, sum.leaves += each.leaves;
    sum.deepest = std::max(sum.deepest, each.deepest);
  }
  return sum;
}

}  // namespace tree_search
