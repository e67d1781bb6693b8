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

/// The number of `other` among the members beside `holder`, in whose memory its piece lies.
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
