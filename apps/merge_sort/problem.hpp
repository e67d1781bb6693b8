// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The problem: keys in the memory of several devices, to be sorted as one sequence.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "beeline/core/macros.hpp"
#include "common/devices.hpp"

namespace merge_sort {

using Key = std::uint64_t;

/// Largest number of devices: kernels get a table of all parts.
inline constexpr std::size_t max_parts = 16;

struct Problem {
  std::size_t keys;
  unsigned bits;  ///< random bits of a key, 1 to 64: few bits make many equal keys
  std::uint64_t seed;
};

/// Parses numbers of keys separated by commas, 1 to 64G, with or without K, M, G (powers of 1024). Throws
/// invalid_argument, which quotes the wrong item.
[[nodiscard]] std::vector<std::size_t> parse_keys(const std::string& text);

/// A part of the sequence.
struct Range {
  std::size_t first, count;  ///< at least one key
};
/// The part of device `part` of `parts`: contiguous; parts differ by at most one key. Throws invalid_argument when
/// there are more parts than keys.
[[nodiscard]] Range range_of(std::size_t keys, std::size_t parts, std::size_t part);

/// A bijection of 64-bit words, whose results look random. Source: SplitMix64 (Steele, Lea, Flood, 2014).
BEELINE_HOST_DEVICE inline std::uint64_t mix(std::uint64_t word) {
  word += 0x9e3779b97f4a7c15u;
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
  word = (word ^ word >> 27) * 0x94d049bb133111ebu;
  return word ^ word >> 31;
}

/// Key `index` before the sort.
BEELINE_HOST_DEVICE inline Key initial_key(const Problem& problem, std::size_t index) {
  return mix(mix(problem.seed) + index) >> (64 - problem.bits);
}

/// Number and hash of keys. The hash, a sum of mixed keys, does not depend on their order.
struct Contents {
  std::size_t count = 0;
  std::uint64_t hash = 0;
  void add(Key key) {
    ++count;
    hash += mix(key);
  }
  friend bool operator==(const Contents&, const Contents&) = default;
};
/// Those of the problem, computed by `threads` CPU threads.
[[nodiscard]] Contents contents_of(const Problem& problem, int threads);

/// The result of a sort: whether its keys are in order, and their contents.
struct Checked {
  bool in_order = true;
  Contents contents;
};
[[nodiscard]] Checked check_keys(const std::vector<Key>& keys);

/// Checks, before anything is allocated, that there are enough keys for the devices, and that they fit; throws as
/// `range_of` and `apps::require_room` do.
void check(const apps::Devices& devices, const std::vector<std::size_t>& keys, bool verify);

}  // namespace merge_sort
