// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The problem: a tree whose shape is known only during the search. Each node's children follow from its hash. The
/// trees are the binomial trees of the Unbalanced Tree Search benchmark (Olivier et al., LCPC 2006), with another hash.

#include <cstddef>
#include <cstdint>

#include "beeline/core/config.hpp"
#include "beeline/core/macros.hpp"
#include "common/memory_budget.hpp"

namespace tree_search {

struct alignas(16) Node {
  std::uint64_t hash;
  std::uint64_t depth;
};

/// The root has `root_children`; every other node has `children` children with a probability of `numerator` / 2^32,
/// otherwise none. The expected size is root_children / (1 - children * numerator / 2^32).
struct Tree {
  std::uint64_t seed;
  std::uint32_t root_children, children, numerator;

  [[nodiscard]] BEELINE_HOST_DEVICE Node root() const { return {mixed(seed), 0}; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t children_of(const Node& node) const {
    if (node.depth == 0) return root_children;
    return static_cast<std::uint32_t>(node.hash >> 32) < numerator ? children : 0;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE static Node child(const Node& node, std::uint32_t index) {
    return {mixed(node.hash + 0x9e3779b97f4a7c15u * (index + 1)), node.depth + 1};
  }

 private:
  /// The finalizer of SplitMix64.
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint64_t mixed(std::uint64_t word) {
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
    word = (word ^ word >> 27) * 0x94d049bb133111ebu;
    return word ^ word >> 31;
  }
};

/// The counts of a search.
struct Counts {
  std::uint64_t nodes, leaves, deepest;

  bool operator==(const Counts&) const = default;
};

/// A binomial tree of about `nodes` nodes, many hundreds of levels deep: the root has 2,000 children, and one node in
/// eight has eight children. Throws invalid_argument for less than 4,000 or more than 10^10.
[[nodiscard]] Tree make_tree(std::uint64_t nodes, std::uint64_t seed);

/// Searches by a loop with a stack; shares no code with the methods but the tree.
[[nodiscard]] Counts serial_search(const Tree& tree);

/// Sets the heap sizes of `config` for the methods; throws as `apps::fit` does.
void fit(beeline::Config& config, const apps::Machine& machine);

}  // namespace tree_search
