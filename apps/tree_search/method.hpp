// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The interface of the methods, and their list.

#include <cstddef>
#include <vector>

#include "beeline/host/team.hpp"
#include "common/method.hpp"
#include "tree.hpp"

namespace tree_search {

/// The data of the methods. Constructor and destructor are collective.
class Problem {
 public:
  Problem(beeline::World& world, const Tree& tree) : world_(world), tree_(tree), counts_(world, 1) {}

  [[nodiscard]] beeline::World& world() const { return world_; }
  [[nodiscard]] const Tree& tree() const { return tree_; }
  /// The counts to which this rank's searches add.
  [[nodiscard]] Counts* counts() const { return counts_.data(); }
  /// Collective. Returns the sum of all ranks' counts, and sets them to zero.
  [[nodiscard]] Counts take_counts();

 private:
  beeline::World& world_;
  const Tree tree_;
  beeline::SymmetricArray<Counts> counts_;
};

/// One method to search. Constructors and destructors are collective.
class Method : public apps::MethodOn<Problem> {
 public:
  using MethodOn::MethodOn;
  /// Collective. Searches the whole tree, and returns when all ranks have finished. Throws no_resource if the tree is
  /// too wide, and the error of a failed wait: deadline, aborted, peer_died.
  virtual void search() = 0;

 protected:
  [[nodiscard]] Problem& problem() const { return data(); }
};

using MethodInfo = apps::MethodInfo<Method, Problem>;

/// Every method, the bulk-synchronous one first.
[[nodiscard]] const std::vector<MethodInfo>& methods();

[[nodiscard]] MethodInfo bulk();
[[nodiscard]] MethodInfo task();

/// Symmetric memory that each method needs on a rank.
[[nodiscard]] std::size_t bulk_heap_bytes();
[[nodiscard]] std::size_t task_heap_bytes(int ranks, bool gpus);

}  // namespace tree_search
