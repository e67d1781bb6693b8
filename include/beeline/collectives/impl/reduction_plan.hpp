// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a reduction combines and who gets what.

#include "beeline/collectives/impl/combine.hpp"

namespace beeline::detail {

/// Reduce, all-reduce or reduce-scatter, as one member sees it.
template <class T>
struct ReductionPlan {
  CallDescription call;  ///< a root's: it gets the result; otherwise all do
  T* destination;
  const T* source;
  std::size_t count;          ///< elements that this session combines; of a reduce-scatter, of each part
  std::size_t part_step = 0;  ///< of a reduce-scatter: elements of the source from one part to the next

  /// Slice `index` of `all` of it.
  [[nodiscard]] BEELINE_HOST_DEVICE ReductionPlan slice(std::uint32_t index, std::uint32_t all) const {
    const Range mine = part_of(count, all, index, 16 / sizeof(T));
    ReductionPlan plan = *this;
    plan.source += mine.first, plan.count = mine.count, plan.call.slices = all;
    if (plan.destination != nullptr) plan.destination += mine.first;
    return plan;
  }
  /// Whether each gets the part of its rank.
  [[nodiscard]] BEELINE_HOST_DEVICE bool scatters() const { return call.operation == Operation::reduce_scatter; }
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_received_by(std::uint32_t rank) const {
    return call.root == no_peer || call.root == rank;
  }
};

}  // namespace beeline::detail
