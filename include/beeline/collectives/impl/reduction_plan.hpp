// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The data that a reduction combines, and the receivers of its results.

#include "beeline/collectives/impl/combine.hpp"

namespace beeline::detail {

/// One member's part in a reduce, all-reduce or reduce-scatter.
template <class T>
struct ReductionPlan {
  CallDescription call;  ///< with a root, the root gets the result; otherwise all members get it
  T* destination;
  const T* source;
  std::size_t count;          ///< elements that this session combines; in a reduce-scatter, elements of each part
  std::size_t part_step = 0;  ///< in a reduce-scatter: elements of the source from one part to the next

  /// The plan of slice `index` of `all` slices.
  [[nodiscard]] BEELINE_HOST_DEVICE ReductionPlan slice(std::uint32_t index, std::uint32_t all) const {
    const Range mine = part_of(count, all, index, 16 / sizeof(T));
    ReductionPlan plan = *this;
    plan.source += mine.first, plan.count = mine.count, plan.call.slices = all;
    if (plan.destination != nullptr) plan.destination += mine.first;
    return plan;
  }
  /// Whether each member gets the part with its rank.
  [[nodiscard]] BEELINE_HOST_DEVICE bool scatters() const { return call.operation == Operation::reduce_scatter; }
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_received_by(std::uint32_t rank) const {
    return call.root == no_peer || call.root == rank;
  }
};

}  // namespace beeline::detail
