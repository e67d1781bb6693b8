// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Combining vectors that a rank's loads reach: one vector of each member, in the order of ranks.

#include "beeline/collectives/impl/combine_on_host.hpp"
#include "beeline/collectives/impl/drawn_pieces.hpp"
#include "beeline/device/impl/warp_machine.hpp"

namespace beeline::detail {

/// One vector of each member, at the same offset of each slot.
struct MemberVectors {
  const Context& ctx;
  const std::byte* local;  ///< vector of this member

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t members() const { return ctx.size; }
  [[nodiscard]] BEELINE_HOST_DEVICE const std::byte* of(std::uint32_t member) const {
    return ctx.translate(local, member);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uintptr_t bits() const { return reinterpret_cast<std::uintptr_t>(local); }
};

/// One vector of each member, all in this rank's memory, `stride` bytes apart.
struct CollectedVectors {
  const std::byte* first;
  std::size_t stride;
  std::uint32_t count;

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t members() const { return count; }
  [[nodiscard]] BEELINE_HOST_DEVICE const std::byte* of(std::uint32_t member) const { return first + member * stride; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uintptr_t bits() const {
    return reinterpret_cast<std::uintptr_t>(first) | stride;
  }
};

/// One vector of each member: this member's vector is separate; the others are contiguous in rank order.
struct FetchedVectors {
  const std::byte* own;
  CollectedVectors others;
  std::uint32_t rank;

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t members() const { return others.count + 1; }
  [[nodiscard]] BEELINE_HOST_DEVICE const std::byte* of(std::uint32_t member) const {
    return member == rank ? own : others.of(number_beside(rank, member));
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uintptr_t bits() const {
    return reinterpret_cast<std::uintptr_t>(own) | others.bits();
  }
};

/// Combines `count` words of every member, `step` bytes apart, the first at `offset` bytes from the vectors' start.
template <class T, class Word, unsigned count, class Vectors>
BEELINE_INLINE BEELINE_HOST_DEVICE void combine_words(const Vectors& from, std::size_t offset, std::size_t step,
                                                      Reduction reduction, Word (&result)[count]) {
  constexpr std::uint32_t batch = count > 2 ? 2 : 4;  // members whose loads overlap
  const std::uint32_t members = from.members();
  Partial<T, Word> partial[count];
  BEELINE_NO_UNROLL
  for (std::uint32_t first = 0; first < members; first += batch) {
    Word words[batch][count] = {};
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < batch; ++k)
      if (first + k < members) {
        const std::byte* const at = from.of(first + k) + offset;
        BEELINE_UNROLL
        for (unsigned i = 0; i < count; ++i) words[k][i] = machine::load_as<Word>(at + i * step);
      }
    BEELINE_UNROLL
    for (std::uint32_t k = 0; k < batch; ++k)
      if (first + k < members) {
        BEELINE_UNROLL
        for (unsigned i = 0; i < count; ++i)
          first + k == 0 ? partial[i].start(words[k][i]) : partial[i].combine(reduction, words[k][i]);
      }
  }
  BEELINE_UNROLL
  for (unsigned i = 0; i < count; ++i) result[i] = partial[i].finish(reduction, members);
}

/// Combines `count` words, `step` bytes apart, and calls `store` with the offset in bytes and the word of each.
template <class T, class Word, unsigned count, class Vectors, class Store>
BEELINE_INLINE BEELINE_HOST_DEVICE void combine_some(const Vectors& from, std::size_t offset, std::size_t step,
                                                     Reduction reduction, const Store& store) {
  Word result[count];
  combine_words<T>(from, offset, step, reduction, result);
  BEELINE_UNROLL
  for (unsigned k = 0; k < count; ++k) store(offset + k * step, result[k]);
}

/// Combines words [0, range.count) from byte `range.first` on; the words are distributed to the threads in turn.
///   words_at_once  words of 16 bytes that each thread combines at once
template <class T, class Word, unsigned words_at_once, class Vectors, class Store>
BEELINE_INLINE BEELINE_HOST_DEVICE void combine_range(ThreadShare threads, const Vectors& from, Range range,
                                                      Reduction reduction, const Store& store) {
  constexpr unsigned at_once = sizeof(Word) == 16 ? words_at_once : 1;
  const std::size_t step = threads.count * sizeof(Word);
  std::size_t i = threads.index;
  BEELINE_NO_UNROLL
  for (; i + (at_once - 1) * threads.count < range.count; i += at_once * threads.count)
    combine_some<T, Word, at_once>(from, range.first + i * sizeof(Word), step, reduction, store);
  if constexpr (at_once > 1) {
    BEELINE_NO_UNROLL
    for (; i < range.count; i += threads.count)
      combine_some<T, Word, 1>(from, range.first + i * sizeof(Word), step, reduction, store);
  }
}

/// Combines the first `count` words of 16 bytes. Pieces of two words for each thread are distributed to whole warps
/// dynamically; each warp begins with the piece of its own number.
template <class T, class Vectors, class Store>
BEELINE_INLINE BEELINE_HOST_DEVICE void combine_drawn(ThreadShare threads, const Vectors& from, std::size_t count,
                                                      Reduction reduction, const Store& store) {
  constexpr std::size_t warp = 32, bytes = sizeof(machine::Word16);
  DrawnPieces pieces(threads.tickets, static_cast<std::uint32_t>(threads.index / warp),
                     static_cast<std::uint32_t>(threads.count / warp),
                     static_cast<std::uint32_t>((count + 2 * warp - 1) / (2 * warp)));
  BEELINE_NO_UNROLL
  for (; pieces.any(); pieces.next()) {
    pieces.draw();
    const std::size_t i = std::size_t{pieces.piece()} * 2 * warp + machine::lane();
    if (i + warp < count)
      combine_some<T, machine::Word16, 2>(from, i * bytes, warp * bytes, reduction, store);
    else if (i < count)
      combine_some<T, machine::Word16, 1>(from, i * bytes, warp * bytes, reduction, store);
  }
}

/// Combines `count` elements with all threads of the share.
///   to     address at which the caller stores; its alignment and the vectors' alignment determine the width of words
///   store  called with the offset of a word (on a CPU of a `Run`) in bytes from the vectors' start, and with the word
template <class T, unsigned words_at_once = 2, class Vectors, class Store>
BEELINE_INLINE BEELINE_HOST_DEVICE void combine_vectors(ThreadShare threads, const Vectors& from, const void* to,
                                                        std::size_t count, Reduction reduction, const Store& store) {
  if constexpr (executor == DeviceKind::host) return combine_on_host<T>(threads, from, count, reduction, store);
  const bool aligned = ((reinterpret_cast<std::uintptr_t>(to) | from.bits()) & 15u) == 0;
  const std::size_t whole = aligned ? count / elements_in_16<T> : 0, rest = whole * elements_in_16<T>;
  const auto combine_whole = [&](Reduction known) {
    if (threads.tickets != nullptr)
      combine_drawn<T>(threads, from, whole, known, store);
    else
      combine_range<T, machine::Word16, words_at_once>(threads, from, {0, whole}, known, store);
  };
  if (adds(reduction))  // separate loops without tests of the reduction
    combine_whole(reduction == Reduction::average ? Reduction::average : Reduction::sum);
  else
    combine_whole(reduction);
  combine_range<T, T, 1>(threads, from, {rest * sizeof(T), count - rest}, reduction, store);
}

/// As `combine_vectors`, with results in a vector of this rank.
template <class T, unsigned words_at_once = 2, class Vectors>
BEELINE_INLINE BEELINE_HOST_DEVICE void combine_into(ThreadShare threads, const Vectors& from, T* to, std::size_t count,
                                                     Reduction reduction) {
  combine_vectors<T, words_at_once>(threads, from, to, count, reduction, [to](std::size_t place, const auto& word) {
    store_vector<T>(reinterpret_cast<std::byte*>(to) + place, word);
  });
}

}  // namespace beeline::detail
