// SPDX-License-Identifier: Apache-2.0
// Loops over test data. Builds with sanitizers compile this file without them: it contains no code under test.
#include <cstring>

#include "tests/support/random.hpp"

namespace beeline_test {

namespace {

/// Steele, Lea, Flood: SplitMix64.
std::uint64_t mixed(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

std::uint64_t mix(std::uint64_t z) { return mixed(z); }

std::byte pattern_byte(std::uint64_t key, std::size_t index) {
  return static_cast<std::byte>(mixed(mixed(key) + index / 8) >> (8 * (index % 8)));
}

void fill_pattern(std::byte* to, std::uint64_t key, std::size_t bytes) {
  const std::uint64_t start = mixed(key);
  for (std::size_t first = 0; first < bytes; first += 8) {
    const std::uint64_t word = mixed(start + first / 8);  // its lowest byte comes first, as on all CPUs of CUDA
    std::memcpy(to + first, &word, bytes - first < 8 ? bytes - first : 8);
  }
}

}  // namespace beeline_test
