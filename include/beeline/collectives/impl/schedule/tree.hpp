// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tree: reductions through the channel's memory, up a binomial tree, and for an all-reduce down again (seed
/// 000, 6.8.3).

#include "beeline/collectives/impl/reduction_plan.hpp"
#include "beeline/collectives/impl/schedule/staged.hpp"

namespace beeline::detail {

/// The tree's root is the receiver, or member 0. Partial results have the type of the accumulator. They are combined in
/// pairs of neighbours, then in pairs of pairs, and so on.
template <class T, class Group, class Stores>
struct TreeSteps {
  using Wide = Accumulator<T>;
  const Session<Group>& session;
  const ReductionPlan<T>& plan;
  Stores& stores;
  std::uint32_t levels;  ///< log2 of the number of members, rounded up

  /// One slot for the partial result, one for the data that arrive on each of at most six levels, and one unused slot.
  static constexpr std::size_t slots = 8;

  [[nodiscard]] BEELINE_HOST_DEVICE const Context& ctx() const { return session.context(); }
  [[nodiscard]] BEELINE_HOST_DEVICE bool descends() const { return plan.call.root == no_peer; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t number() const { return descends() ? 2 * levels : levels; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t slot_bytes() const {
    return (session.staging_bytes() / slots) & ~std::size_t{15};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t most() const { return slot_bytes() / sizeof(Wide); }
  [[nodiscard]] BEELINE_HOST_DEVICE Wide* slot(std::size_t done, std::uint32_t index) const {
    // A reduction alternates between the halves; an all-reduce has barriers after which its first half is free again.
    const auto half = static_cast<std::uint32_t>(descends() ? 0 : done / most() & 1u);
    return reinterpret_cast<Wide*>(session.staging(half) + index * slot_bytes());
  }
  [[nodiscard]] BEELINE_HOST_DEVICE T* result() const { return reinterpret_cast<T*>(session.staging(1)); }
  /// This member's position in the tree; the root has position 0.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t place() const {
    return descends() ? ctx().rank : (ctx().rank + ctx().size - plan.call.root) % ctx().size;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t member_at(std::uint32_t place) const {
    return descends() ? place : (place + plan.call.root) % ctx().size;
  }
  /// Whether this member has a child on this level, and whether it is a child.
  [[nodiscard]] BEELINE_HOST_DEVICE bool has_child(std::uint32_t level) const {
    return place() % (2u << level) == 0 && place() + (1u << level) < ctx().size;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_child(std::uint32_t level) const {
    return place() % (2u << level) == 1u << level;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t level_of(std::uint32_t step) const {
    return step < levels ? step : 2 * levels - 1 - step;
  }

  BEELINE_HOST_DEVICE void before(std::uint32_t step, std::size_t done, std::size_t count) {
    const std::uint32_t level = level_of(step), thread = session.group().thread_rank(),
                        threads = session.group().size();
    if (step == 0) {
      for (std::size_t i = thread; i < count; i += threads)
        slot(done, 0)[i] = ElementTraits<T>::widen(plan.source[done + i]);
      session.group().sync();
    }
    if (step < levels && is_child(level)) {
      const std::uint32_t parent = member_at(place() - (1u << level));
      stores.put(reinterpret_cast<std::byte*>(slot(done, 1 + level)), reinterpret_cast<std::byte*>(slot(done, 0)),
                 count * sizeof(Wide), parent);
    }
    if (step >= levels && has_child(level)) {
      auto* const bytes = reinterpret_cast<std::byte*>(result());
      stores.put(bytes, bytes, count * sizeof(T), member_at(place() + (1u << level)));
    }
  }

  BEELINE_HOST_DEVICE void after(std::uint32_t step, std::size_t done, std::size_t count) {
    const std::uint32_t level = level_of(step), thread = session.group().thread_rank(),
                        threads = session.group().size();
    if (step < levels && has_child(level))
      for (std::size_t i = thread; i < count; i += threads)
        slot(done, 0)[i] = combine(plan.call.reduction, slot(done, 0)[i], slot(done, 1 + level)[i]);
    if (step + 1 == levels && place() == 0) finish(done, count);
    if (step + 1 == 2 * levels) {
      session.group().sync();
      copy_bytes(session.group(), plan.destination + done, result(), count * sizeof(T));
    }
  }

  /// Makes the root's result from its partial result. Each thread handles the elements that it has combined.
  BEELINE_HOST_DEVICE void finish(std::size_t done, std::size_t count) {
    T* const to = descends() ? result() : plan.destination + done;
    for (std::size_t i = session.group().thread_rank(); i < count; i += session.group().size()) {
      const Wide whole = slot(done, 0)[i];
      to[i] = ElementTraits<T>::narrow(
          plan.call.reduction == Reduction::average ? static_cast<Wide>(whole / static_cast<Wide>(ctx().size)) : whole);
    }
  }
};

template <class T, class Group, class Stores>
[[nodiscard]] BEELINE_HOST_DEVICE Status reduce_by_tree(Session<Group>& session, const ReductionPlan<T>& plan,
                                                        Stores& stores, Timeout timeout) {
  std::uint32_t levels = 0;
  while (1u << levels < session.context().size) ++levels;
  TreeSteps<T, Group, Stores> steps{session, plan, stores, levels};
  return run_steps(session, steps, plan.count, timeout);
}

}  // namespace beeline::detail
