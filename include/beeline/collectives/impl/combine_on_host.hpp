// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Combining vectors on a CPU: block by block, by loops over one vector that compile to vector instructions. Word by
/// word, as on a GPU, combining takes four to five times as long.

#include "beeline/collectives/impl/words.hpp"

namespace beeline::detail {

template <Reduction reduction, class T>
BEELINE_HOST_DEVICE void add_block(Accumulator<T>* so_far, const T* elements, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    so_far[i] = combine(reduction, so_far[i], ElementTraits<T>::widen(elements[i]));
}

template <class T>
BEELINE_HOST_DEVICE void add_block(Reduction reduction, Accumulator<T>* so_far, const T* elements, std::size_t count) {
  switch (reduction) {
    case Reduction::product:
      return add_block<Reduction::product>(so_far, elements, count);
    case Reduction::minimum:
      return add_block<Reduction::minimum>(so_far, elements, count);
    case Reduction::maximum:
      return add_block<Reduction::maximum>(so_far, elements, count);
    case Reduction::bit_and:
      return add_block<Reduction::bit_and>(so_far, elements, count);
    case Reduction::bit_or:
      return add_block<Reduction::bit_or>(so_far, elements, count);
    case Reduction::bit_xor:
      return add_block<Reduction::bit_xor>(so_far, elements, count);
    default:
      return add_block<Reduction::sum>(so_far, elements, count);
  }
}

/// Consecutive elements; corresponds to a word on a GPU.
template <class T>
struct Run {
  const T* elements;
  std::size_t count;
};

template <class T>
BEELINE_HOST_DEVICE void store_vector(std::byte* to, const Run<T>& run) {
  std::memcpy(to, run.elements, run.count * sizeof(T));
}

/// `count` elements of all members' vectors, combined in the order of ranks; each thread takes one contiguous share.
///   from   the members' vectors; see combine.hpp
///   store  called with the offset in bytes from the vectors' start, and a `Run` of results
template <class T, class Vectors, class Store>
BEELINE_HOST_DEVICE void combine_on_host(ThreadShare threads, const Vectors& from, std::size_t count,
                                         Reduction reduction, const Store& store) {
  const std::uint32_t members = from.members();
  const auto vector_of = [&from](std::uint32_t member) { return reinterpret_cast<const T*>(from.of(member)); };
  constexpr std::size_t block = 1024, line = 64 / sizeof(T);
  Accumulator<T> so_far[block];
  T results[block];
  const Range mine =
      part_of(count, static_cast<std::uint32_t>(threads.count), static_cast<std::uint32_t>(threads.index), line);
  for (std::size_t first = mine.first; first < mine.first + mine.count; first += block) {
    const std::size_t rest = mine.first + mine.count - first, some = rest < block ? rest : block;
    const T* const start = vector_of(0) + first;
    for (std::size_t i = 0; i < some; ++i) so_far[i] = ElementTraits<T>::widen(start[i]);
    for (std::uint32_t member = 1; member < members; ++member)
      add_block(reduction, so_far, vector_of(member) + first, some);
    if (reduction == Reduction::average)
      for (std::size_t i = 0; i < some; ++i)
        so_far[i] = static_cast<Accumulator<T>>(so_far[i] / static_cast<Accumulator<T>>(members));
    for (std::size_t i = 0; i < some; ++i) results[i] = ElementTraits<T>::narrow(so_far[i]);
    store(first * sizeof(T), Run<T>{results, some});
  }
}

}  // namespace beeline::detail
