// SPDX-License-Identifier: Apache-2.0
#include "tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "beeline/core/error.hpp"
#include "method.hpp"

namespace tree_search {

Tree make_tree(std::uint64_t nodes, std::uint64_t seed) {
  constexpr std::uint32_t root_children = 2000, children = 8;
  constexpr std::uint64_t fewest = 2 * root_children, most = 10'000'000'000u;
  beeline::require(nodes >= fewest && nodes <= most, beeline::Status::invalid_argument,
                   fmt::format("--nodes: {} is no size of a tree; valid: {} to {}", nodes, fewest, most));
  // nodes = root_children / (1 - children * p)
  const double p = (1 - static_cast<double>(root_children) / static_cast<double>(nodes)) / children;
  return {seed, root_children, children, static_cast<std::uint32_t>(p * 4294967296.0)};
}

Counts serial_search(const Tree& tree) {
  Counts counts{};
  std::vector<Node> stack{tree.root()};
  while (!stack.empty()) {
    const Node node = stack.back();
    stack.pop_back();
    const std::uint32_t children = tree.children_of(node);
    ++counts.nodes;
    if (children == 0) ++counts.leaves;
    counts.deepest = std::max(counts.deepest, node.depth);
    for (std::uint32_t i = 0; i < children; ++i) stack.push_back(Tree::child(node, i));
  }
  return counts;
}

void fit(beeline::Config& config, const apps::Machine& machine) {
  apps::fit(config,
            {.problem = fmt::format("a tree search on {} ranks", config.size),
             .symmetric_bytes = task_heap_bytes(config.size, !machine.gpus.empty()) + bulk_heap_bytes(),
             .pinned_bytes = std::size_t{1} << 20,
             .reference_bytes = std::size_t{64} << 20},
            machine);
}

}  // namespace tree_search
