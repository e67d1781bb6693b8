// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Counting by threads, and adding to a rank's counts.

#include "beeline/device/wait.hpp"
#include "tree.hpp"

namespace tree_search {

/// The counts of one thread.
class Tally {
 public:
  BEELINE_HOST_DEVICE void add(const Node& node, std::uint32_t children) {
    ++mine_.nodes;
    if (children == 0) ++mine_.leaves;
    if (node.depth > mine_.deepest) mine_.deepest = node.depth;
  }
  BEELINE_HOST_DEVICE void give(Counts& counts) const {
    using Word = beeline::detail::DeviceAtomic<std::uint64_t>;
    if (mine_.nodes == 0) return;
    Word(counts.nodes).fetch_add(mine_.nodes, std::memory_order_relaxed);
    Word(counts.leaves).fetch_add(mine_.leaves, std::memory_order_relaxed);
    Word(counts.deepest).fetch_max(mine_.deepest, std::memory_order_relaxed);
  }

 private:
  Counts mine_{};
};

}  // namespace tree_search
