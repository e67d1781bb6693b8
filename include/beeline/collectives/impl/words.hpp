// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Vectors as words: how sessions cut them up, and read and write them at any count and alignment.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "beeline/collectives/reduction.hpp"
#include "beeline/collectives/session.hpp"

namespace beeline::detail {

/// Elements [first, first + count) of a vector.
struct Range {
  std::size_t first, count;
};

/// One of the threads that share some work. They take turns; or their warps draw pieces, so that multiprocessors which
/// reach the other ranks more slowly do less.
struct ThreadShare {
  std::size_t index, count;
  std::uint32_t* tickets = nullptr;  ///< pieces that have been drawn; nullptr: they take turns
};

/// Part `index` of `parts` equal ones of `count` elements; all but the last end at multiples of `grain`.
[[nodiscard]] BEELINE_HOST_DEVICE inline Range part_of(std::size_t count, std::uint32_t parts, std::uint32_t index,
                                                       std::size_t grain) {
  const std::size_t grains = (count + grain - 1) / grain + parts - 1;
  // A GPU divides 64 bits in a long function.
  const std::size_t each = (grains >> 32 == 0 ? static_cast<std::uint32_t>(grains) / parts : grains / parts) * grain;
  const std::size_t first = each * index < count ? each * index : count;
  return {first, first + each < count ? each : count - first};
}

template <class T>
inline constexpr std::size_t elements_in_16 = 16 / sizeof(T);

/// At most 8 bytes of elements as a word: those of a vector's end, or unaligned ones.
template <class T>
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE std::uint64_t gather_elements(const T* from, std::size_t count) {
  T elements[8 / sizeof(T)] = {};
  BEELINE_NO_UNROLL
  for (std::size_t i = 0; i < 8 / sizeof(T) && i < count; ++i) elements[i] = from[i];
  std::uint64_t word;
  std::memcpy(&word, elements, sizeof word);
  return word;
}
template <class T>
BEELINE_COLD BEELINE_HOST_DEVICE void scatter_elements(T* to, std::uint64_t word, std::size_t count) {
  T elements[8 / sizeof(T)];
  std::memcpy(elements, &word, sizeof word);
  BEELINE_NO_UNROLL
  for (std::size_t i = 0; i < 8 / sizeof(T) && i < count; ++i) to[i] = elements[i];
}

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE bool is_whole_word(const T* at, std::size_t count) {
  return count >= 8 / sizeof(T) && (reinterpret_cast<std::uintptr_t>(at) & 7u) == 0;
}

/// Word `index` of a vector of `count` elements; zeros behind its end.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t load_word(const T* vector, std::size_t index, std::size_t count) {
  const std::size_t first = index * (8 / sizeof(T));
  if (is_whole_word(vector + first, count - first)) [[likely]]
    return machine::load_as<std::uint64_t>(reinterpret_cast<const std::byte*>(vector + first));
  return gather_elements(vector + first, count - first);
}
template <class T>
BEELINE_HOST_DEVICE void store_word(T* vector, std::size_t index, std::size_t count, std::uint64_t word) {
  const std::size_t first = index * (8 / sizeof(T));
  if (is_whole_word(vector + first, count - first)) [[likely]]
    machine::store_as(reinterpret_cast<std::byte*>(vector + first), word);
  else
    scatter_elements(vector + first, word, count - first);
}
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE std::size_t words_of(std::size_t count) {
  return (count * sizeof(T) + 7) / 8;
}

/// Stores a word of a vector of T: one element, or 16 bytes.
template <class T, class Word>
BEELINE_HOST_DEVICE void store_vector(std::byte* to, const Word& word) {
  machine::store_as(to, word);
}

/// Words `place` of all members, combined in the order of ranks. One thread waits for all of them.
template <class T, class Group>
class ReceivedWords {
 public:
  /// `own`: this rank's word; nullptr: it has sent it to itself.
  BEELINE_HOST_DEVICE ReceivedWords(const Session<Group>& session, std::uint32_t place, const std::uint64_t* own)
      : session_(session), place_(place), own_(own == nullptr ? 0 : *own),
        silent_(own == nullptr ? no_peer : session.context().rank) {}

  [[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status reduce(Reduction reduction, Timeout timeout,
                                                                 std::uint64_t& result) {
    const std::uint32_t members = session_.context().size;
    std::uint32_t peer = 0;
    Status status = Status::ok;
    BEELINE_NO_UNROLL
    for (; peer + 4 <= members && status == Status::ok; peer += 4) status = combine<4>(peer, reduction, timeout);
    BEELINE_NO_UNROLL
    for (; peer + 2 <= members && status == Status::ok; peer += 2) status = combine<2>(peer, reduction, timeout);
    if (peer < members && status == Status::ok) status = combine<1>(peer, reduction, timeout);
    result = partial_.finish(reduction, members);
    return status;
  }

 private:
  template <unsigned count>
  [[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status combine(std::uint32_t first, Reduction reduction,
                                                                  Timeout timeout) {
    std::uint64_t words[count];
    BEELINE_UNROLL
    for (std::uint64_t& word : words) word = own_;
    const Status status = session_.receive_words(first, place_, words, timeout, silent_);
    if (status != Status::ok) return status;
    BEELINE_UNROLL
    for (unsigned k = 0; k < count; ++k)
      first + k == 0 ? partial_.start(words[k]) : partial_.combine(reduction, words[k]);
    return Status::ok;
  }

  const Session<Group>& session_;
  Partial<T, std::uint64_t> partial_;
  std::uint32_t place_;
  std::uint64_t own_;
  std::uint32_t silent_;
};

}  // namespace beeline::detail
