// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How threads and sessions share vectors.

#include <cstddef>
#include <cstdint>

#include "beeline/collectives/reduction.hpp"
#include "beeline/collectives/session.hpp"
#include "beeline/device/impl/words.hpp"

namespace beeline::detail {

/// Elements [first, first + count) of a vector.
struct Range {
  std::size_t first, count;
};

/// One of the threads that share some work. Work is distributed to the threads in turn, or dynamically: then warps take
/// pieces from a counter, so that multiprocessors with slower access to the other ranks do less.
struct ThreadShare {
  std::size_t index, count;
  std::uint32_t* tickets = nullptr;  ///< counter of pieces that have been taken; nullptr: work is distributed in turn
};

/// Part `index` of `parts` equal parts of `count` elements; all parts except the last end at multiples of `grain`.
[[nodiscard]] BEELINE_HOST_DEVICE inline Range part_of(std::size_t count, std::uint32_t parts, std::uint32_t index,
                                                       std::size_t grain) {
  const std::size_t grains = (count + grain - 1) / grain + parts - 1;
  // On a GPU a 64-bit division is slow.
  const std::size_t each = (grains >> 32 == 0 ? static_cast<std::uint32_t>(grains) / parts : grains / parts) * grain;
  const std::size_t first = each * index < count ? each * index : count;
  return {first, first + each < count ? each : count - first};
}

/// The index of `other` among the members except `holder`, by which its piece is found in the memory of `holder`.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint32_t number_beside(std::uint32_t holder, std::uint32_t other) {
  return other < holder ? other : other - 1;
}

template <class T>
inline constexpr std::size_t elements_in_16 = 16 / sizeof(T);

/// Stores a word of a vector of T: one element, or 16 bytes.
template <class T, class Word>
BEELINE_HOST_DEVICE void store_vector(std::byte* to, const Word& word) {
  machine::store_as(to, word);
}

}  // namespace beeline::detail
