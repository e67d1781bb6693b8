// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a reduction combines and who gets what.

#include "beeline/collectives/impl/combine.hpp"

namespace beeline::detail {

/// Reduce, all-reduce or reduce-scatter, as one member sees it.
template <class T>
struct ReductionPlan {
  T* destination;
  const T* source;
  std::size_t count;  ///< elements that this session combines; of a reduce-scatter, of each part
  Reduction reduction;
  std::uint32_t root = no_peer;  ///< who gets the result; `no_peer`: all
  bool scatters = false;         ///< each gets the part of its rank
  std::size_t part_step = 0;     ///< then: elements of the source from one part to the next
  std::uint32_t slices = 1;      ///< of which this is one

  /// Slice `index` of `all` of it.
  [[nodiscard]] BEELINE_HOST_DEVICE ReductionPlan slice(std::uint32_t index, std::uint32_t all) const {
    const Range mine = part_of(count, all, index, 16 / sizeof(T));
    ReductionPlan plan = *this;
    plan.source += mine.first, plan.count = mine.count, plan.slices = all;
    if (plan.destination != nullptr) plan.destination += mine.first;
    return plan;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE Operation operation() const {
    return scatters ? Operation::reduce_scatter : root != no_peer ? Operation::reduce : Operation::allreduce;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_received_by(std::uint32_t rank) const {
    return root == no_peer || root == rank;
  }
};

}  // namespace beeline::detail
