// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Combining vectors that lie on one rank: the work that is left where engines move the data.

#include "beeline/collectives/words.hpp"

namespace beeline::detail {

/// Vectors of all members, in local memory.
template <class T>
struct LocalVectors {
  const T* own;        ///< [count] this member's
  const T* others;     ///< the other members', in the order of ranks, `stride` elements apart
  std::size_t stride;  ///< a multiple of 16 bytes
  std::uint32_t rank, members;

  /// Element `first` of member `peer`'s.
  [[nodiscard]] BEELINE_HOST_DEVICE const T* of(std::uint32_t peer, std::size_t first) const {
    if (peer == rank) return own + first;
    return others + (peer < rank ? peer : peer - 1) * stride + first;
  }
};

template <class T, class Word>
BEELINE_HOST_DEVICE void reduce_local_words(const LocalVectors<T>& vectors, ThreadShare threads, T* destination,
                                            Range range, Reduction reduction) {
  constexpr std::size_t each = sizeof(Word) / sizeof(T);
  BEELINE_NO_UNROLL
  for (std::size_t i = threads.index; i < range.count; i += threads.count) {
    const std::size_t first = range.first + i * each;
    Partial<T, Word> partial;
    BEELINE_NO_UNROLL
    for (std::uint32_t peer = 0; peer < vectors.members; ++peer) {
      const Word word = load_vector<T, Word>(reinterpret_cast<const std::byte*>(vectors.of(peer, first)));
      peer == 0 ? partial.start(word) : partial.combine(reduction, word);
    }
    store_vector<T>(reinterpret_cast<std::byte*>(destination + first), partial.finish(reduction, vectors.members));
  }
}

/// Combines `count` elements in the order of ranks, with all threads of a grid.
///   destination  [count], may be `vectors.own`
template <class T>
BEELINE_HOST_DEVICE void reduce_local(const LocalVectors<T>& vectors, ThreadShare threads, T* destination,
                                      std::size_t count, Reduction reduction) {
  const auto bits = reinterpret_cast<std::uintptr_t>(destination) | reinterpret_cast<std::uintptr_t>(vectors.own) |
                    reinterpret_cast<std::uintptr_t>(vectors.others);
  const std::size_t whole = (bits & 15u) == 0 ? count / elements_in_16<T> : 0, rest = whole * elements_in_16<T>;
  reduce_local_words<T, machine::Word16>(vectors, threads, destination, {0, whole}, reduction);
  reduce_local_words<T, T>(vectors, threads, destination, {rest, count - rest}, reduction);
}

}  // namespace beeline::detail
