// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Vectors as words of 8 bytes, at any count and alignment.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "beeline/device/impl/machine.hpp"

namespace beeline::detail {

/// At most 8 bytes of elements as a word, at a vector's end or unaligned.
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

/// As `gather_elements`, for bytes, without an array, which a GPU would keep in its stack.
BEELINE_COLD BEELINE_HOST_DEVICE inline std::uint64_t gather_bytes(const std::byte* from, std::size_t bytes) {
  std::uint64_t word = 0;
  BEELINE_NO_UNROLL
  for (std::size_t i = 0; i < 8 && i < bytes; ++i) word |= static_cast<std::uint64_t>(from[i]) << (8 * i);
  return word;
}
BEELINE_COLD BEELINE_HOST_DEVICE inline void scatter_bytes(std::byte* to, std::uint64_t word, std::size_t bytes) {
  BEELINE_NO_UNROLL
  for (std::size_t i = 0; i < 8 && i < bytes; ++i) to[i] = static_cast<std::byte>(word >> (8 * i));
}

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE bool is_whole_word(const T* at, std::size_t count) {
  return count >= 8 / sizeof(T) && (reinterpret_cast<std::uintptr_t>(at) & 7u) == 0;
}

/// Word `index` of a vector of `count` elements; zeros after the vector's end.
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

}  // namespace beeline::detail
