// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The Himeno problem: its sizes, how ranks share it, and the initial values of the arrays.

#include <cstddef>
#include <cstdint>
#include <string>

#include "beeline/core/macros.hpp"

namespace himeno {

/// Relaxation factor of the official benchmark.
inline constexpr float omega = 0.8f;
/// Floating-point operations for one interior point, as the official benchmark counts them.
inline constexpr double flop_per_point = 34;

/// Points along each axis, boundary included. x, y, z are the official i, j, k; z is the slowest axis in memory.
struct Size {
  int x, y, z;
  /// Points that an iteration updates.
  [[nodiscard]] double interior() const { return double(x - 2) * double(y - 2) * double(z - 2); }
  [[nodiscard]] std::size_t points() const {
    return static_cast<std::size_t>(x) * static_cast<std::size_t>(y) * static_cast<std::size_t>(z);
  }
  [[nodiscard]] double flop() const { return flop_per_point * interior(); }
  friend bool operator==(const Size&, const Size&) = default;
};

/// Parses XS, S, M, L, XL or NxNxN (x, y, z; 3 to 32768 each). Throws invalid_argument naming the text.
///   ranks  number of parts of this size, stacked along z
[[nodiscard]] Size parse_size(const std::string& text, int ranks = 1);

/// The interior planes of one rank.
struct Slab {
  int first;   ///< global z of its first interior plane, at least 1
  int planes;  ///< at least 1
};

/// The slab of `rank` among `ranks`: contiguous; sizes of slabs differ by at most one plane.
/// Throws invalid_argument when there are more ranks than interior planes.
[[nodiscard]] Slab slab_of(const Size& size, int ranks, int rank);

/// The stored arrays. Each has a value for every point, even constant arrays, as the official benchmark demands.
enum class Array : std::uint32_t { a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bnd, wrk1, p };
inline constexpr std::uint32_t coefficient_arrays = 12;

/// The initial values of the arrays.
enum class Data : std::uint32_t {
  official,  ///< the benchmark's: a0..a2 = c = bnd = 1, a3 = 1/6, b = wrk1 = 0, p = i^2 / (imax - 1)^2
  scrambled  ///< a different value in every point of every array, which exposes a wrong neighbour or a stale halo
};

namespace detail {

/// A fraction in [0, 1) of 24 bits, the same on every device.
BEELINE_HOST_DEVICE inline float scrambled(Array array, int x, int y, int z) {
  std::uint64_t bits = static_cast<std::uint64_t>(array);
  for (const int coordinate : {x, y, z}) {
    bits = (bits + static_cast<std::uint64_t>(coordinate) + 1) * 0x9e3779b97f4a7c15u;
    bits ^= bits >> 29;
  }
  return static_cast<float>(bits >> 40) / 16777216.0f;
}

BEELINE_HOST_DEVICE inline float scrambled_value(Array array, int x, int y, int z) {
  const float fraction = scrambled(array, x, y, z);
  switch (array) {
    case Array::a3:
      return (1.0f / 6.0f) * (0.9f + 0.2f * fraction);
    case Array::b0:
    case Array::b1:
    case Array::b2:
      return 0.1f * fraction - 0.05f;
    case Array::bnd:
      return fraction < 0.0625f ? 0.0f : 1.0f;
    case Array::wrk1:
      return 0.02f * fraction - 0.01f;
    case Array::p:
      return fraction;
    default:
      return 0.9f + 0.2f * fraction;
  }
}

BEELINE_HOST_DEVICE inline float official_value(const Size& size, Array array, int x) {
  switch (array) {
    case Array::a3:
      return 1.0f / 6.0f;
    case Array::b0:
    case Array::b1:
    case Array::b2:
    case Array::wrk1:
      return 0.0f;
    case Array::p:
      return static_cast<float>(x * x) / static_cast<float>((size.x - 1) * (size.x - 1));
    default:
      return 1.0f;
  }
}

}  // namespace detail

/// The value of `array` at the global point (x, y, z) before the first iteration.
BEELINE_HOST_DEVICE inline float initial_value(Data data, const Size& size, Array array, int x, int y, int z) {
  return data == Data::official ? detail::official_value(size, array, x) : detail::scrambled_value(array, x, y, z);
}

}  // namespace himeno
