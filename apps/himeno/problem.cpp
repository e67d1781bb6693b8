// SPDX-License-Identifier: Apache-2.0
#include "problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <utility>

#include "beeline/core/error.hpp"

namespace himeno {

namespace {

constexpr int smallest = 3, largest = 32768;

constexpr std::array<std::pair<const char*, Size>, 5> named_sizes{{{"XS", {32, 32, 64}},
                                                                   {"S", {64, 64, 128}},
                                                                   {"M", {128, 128, 256}},
                                                                   {"L", {256, 256, 512}},
                                                                   {"XL", {512, 512, 1024}}}};

/// The size of the whole grid if each of `ranks` ranks has a part of `size`, stacked along z.
Size extended(Size size, int ranks) {
  beeline::require(size.z <= largest / ranks, beeline::Status::invalid_argument,
                   fmt::format("--size: weak scaling to {} ranks makes {} points along z, more than {}", ranks,
                               std::int64_t{size.z} * ranks, largest));
  return {size.x, size.y, size.z * ranks};
}

Size parse_one(const std::string& text) {
  std::string capitals = text;
  std::ranges::transform(capitals, capitals.begin(), [](unsigned char letter) { return std::toupper(letter); });
  for (const auto& [name, size] : named_sizes)
    if (capitals == name) return size;
  std::array<int, 3> axes{};
  const char* next = text.data();
  const char* const end = next + text.size();
  bool good = true;
  for (std::size_t axis = 0; axis < axes.size() && good; ++axis) {
    if (axis > 0) good = next != end && *next++ == 'x';
    const auto [after, error] = std::from_chars(next, end, axes[axis]);
    good = good && error == std::errc{} && axes[axis] >= smallest && axes[axis] <= largest;
    next = after;
  }
  beeline::require(good && next == end, beeline::Status::invalid_argument,
                   fmt::format("--size: '{}' is no size; valid: XS, S, M, L, XL, or XxYxZ with {} to {} points an axis",
                               text, smallest, largest));
  return {axes[0], axes[1], axes[2]};
}

}  // namespace

Size parse_size(const std::string& text, int ranks) { return extended(parse_one(text), ranks); }

Slab slab_of(const Size& size, int ranks, int rank) {
  const int interior = size.z - 2;
  beeline::require(
      ranks <= interior, beeline::Status::invalid_argument,
      fmt::format("--size: {} ranks for {} interior planes along z (size {}x{}x{}): each rank needs at least one",
                  ranks, interior, size.x, size.y, size.z));
  const int share = interior / ranks, larger = interior % ranks;
  return {1 + rank * share + (rank < larger ? rank : larger), share + (rank < larger ? 1 : 0)};
}

}  // namespace himeno
