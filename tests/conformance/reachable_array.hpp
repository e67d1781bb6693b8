// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Symmetric memory that kernels of every rank can reach, also in mixed worlds.

#include <cstddef>
#include <optional>

#include "tests/conformance/rank_test.hpp"

namespace beeline_test {

/// An array in the given heap, and in pinned memory for directions in which kernels of a host rank could not reach a
/// GPU's heap. Both ends of a direction make the same choice.
template <class T>
class ReachableArray {
 public:
  /// Collective.
  ReachableArray(RankTest& test, std::size_t count, beeline::Heap heap = beeline::Heap::symmetric)
      : test_(test), heap_(test.world(), count, heap) {
    if (test.world().mixed()) pinned_.emplace(test.world(), count, beeline::Heap::pinned);
  }

  /// The address that this rank's kernels pass to operations on `peer`.
  [[nodiscard]] T* at(int peer) const { return part(test_.rank(), peer); }
  /// This rank's part, as kernels of `peer` use it.
  [[nodiscard]] T* used_by(int peer) const { return part(peer, test_.rank()); }

 private:
  [[nodiscard]] T* part(int from, int to) const {
    return pinned_ && !test_.reaches(from, to) ? pinned_->data() : heap_.data();
  }

  RankTest& test_;
  beeline::SymmetricArray<T> heap_;
  std::optional<beeline::SymmetricArray<T>> pinned_;
};

}  // namespace beeline_test
