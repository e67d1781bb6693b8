// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a reduction combines and who gets what; and the combination itself, of vectors in reach.

#include "beeline/collectives/words.hpp"

namespace beeline::detail {

/// Reduce, all-reduce or reduce-scatter, as one member sees it.
template <class T>
struct ReductionPlan {
  T* destination;
  const T* source;
  std::size_t count;  ///< elements that this lane combines; of a reduce-scatter, of each part
  Reduction reduction;
  std::uint32_t root = no_peer;  ///< who gets the result; `no_peer`: all
  bool scatters = false;         ///< each gets the part of its rank
  std::size_t part_step = 0;     ///< then: elements of the source from one part to the next

  /// Slice `index` of `count` of it.
  [[nodiscard]] BEELINE_HOST_DEVICE ReductionPlan slice(std::uint32_t index, std::uint32_t slices) const {
    const Range mine = part_of(count, slices, index, 16 / sizeof(T));
    ReductionPlan plan = *this;
    plan.source += mine.first, plan.count = mine.count;
    if (plan.destination != nullptr) plan.destination += mine.first;
    return plan;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_received_by(std::uint32_t rank) const {
    return root == no_peer || root == rank;
  }
};

/// One vector of each member: here, `stride` bytes apart; or at the same place of every member.
struct Operands {
  const std::byte* first;
  std::size_t stride;
  bool at_members;

  [[nodiscard]] BEELINE_HOST_DEVICE const std::byte* of(const Context& ctx, std::uint32_t member) const {
    return at_members ? ctx.at(first, member) : first + member * stride;
  }
};

/// `count` words, `Word` each, of all members' vectors, combined in the order of ranks.
template <class T, class Word>
BEELINE_HOST_DEVICE void combine_words(const Context& ctx, ThreadShare threads, std::byte* to, const Operands& from,
                                       std::size_t count, Reduction reduction) {
  constexpr std::uint32_t batch = 4;  // members whose loads overlap
  BEELINE_NO_UNROLL
  for (std::size_t i = threads.index; i < count; i += threads.count) {
    Partial<T, Word> partial;
    BEELINE_NO_UNROLL
    for (std::uint32_t first = 0; first < ctx.size; first += batch) {
      Word words[batch] = {};
      for (std::uint32_t k = 0; k < batch; ++k)
        if (first + k < ctx.size) words[k] = load_vector<T, Word>(from.of(ctx, first + k) + i * sizeof(Word));
      for (std::uint32_t k = 0; k < batch; ++k)
        if (first + k < ctx.size) first + k == 0 ? partial.start(words[k]) : partial.combine(reduction, words[k]);
    }
    store_vector<T>(to + i * sizeof(Word), partial.finish(reduction, ctx.size));
  }
}

/// `count` elements of all members' vectors, combined into `to`, by all threads of the lane.
template <class T, class Group>
BEELINE_HOST_DEVICE void combine_vectors(const Lane<Group>& lane, T* to, const Operands& from, std::size_t count,
                                         Reduction reduction) {
  const ThreadShare threads{lane.group().thread_rank(), lane.group().size()};
  auto* const bytes = reinterpret_cast<std::byte*>(to);
  const auto bits = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from.first) | from.stride;
  const std::size_t whole = (bits & 15u) == 0 ? count / elements_in_16<T> : 0, rest = whole * elements_in_16<T>;
  combine_words<T, machine::Word16>(lane.context(), threads, bytes, from, whole, reduction);
  const Operands behind{from.first + rest * sizeof(T), from.stride, from.at_members};
  combine_words<T, T>(lane.context(), threads, bytes + rest * sizeof(T), behind, count - rest, reduction);
}

}  // namespace beeline::detail
