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

/// What methods work on. Constructor and destructor are collective.
class Problem {
 public:
  Problem(beeline::World& world, const Tree& tree) : world_(world), tree_(tree), counts_(world, 1) {}

  [[nodiscard]] beeline::World& world() const { return world_; }
  [[nodiscard]] const Tree& tree() const { return tree_; }
  /// What this rank's searches add their counts to.
  [[nodiscard]] Counts* counts() const { return counts_.data(); }
  /// Collective. All ranks' counts, which are zero afterwards.
  [[nodiscard]] Counts take_counts();

 private:
  beeline::World& world_;
  const Tree tree_;
  beeline::SymmetricArray<Counts> counts_;
};

/// One way to search. Constructors and destructors are collective.
class Method : public apps::MethodOn<Problem> {
 public:
  using MethodOn::MethodOn;
  /// Collective. Searches the whole tree, and returns when all ranks are done. Throws no_resource where it is too wide,
  /// and what a wait met: deadline, aborted, peer_died.
  virtual void search() = 0;

 protected:
  [[nodiscard]] Problem& problem() const { return data(); }
};

using MethodInfo = apps::MethodInfo<Method, Problem>;

/// Every method, the bulk-synchronous one first.
[[nodiscard]] const std::vector<MethodInfo>& methods();

[[nodiscard]] MethodInfo bulk();
[[nodiscard]] MethodInfo task();

/// Symmetric memory of a rank.
[[nodiscard]] std::size_t bulk_heap_bytes();
[[nodiscard]] std::size_t task_heap_bytes(int ranks, bool gpus);

}  // namespace tree_search
