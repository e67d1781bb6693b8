// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <string>

#include "tests/support/check.hpp"

namespace beeline_test {

namespace {

/// Steele, Lea, Flood: SplitMix64.
std::uint64_t mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::uint64_t choose_seed() {
  const char* text = std::getenv("BEELINE_TEST_SEED");
  const std::uint64_t chosen = text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device{}();
  std::fputs(fmt::format("BEELINE_TEST_SEED={}\n", chosen).c_str(), stderr);
  return chosen;
}

}  // namespace

std::uint64_t seed() {
  static const std::uint64_t chosen = choose_seed();
  return chosen;
}

Random::Random(std::string_view label) : state_(seed()) {
  for (const char character : label) state_ = mix(state_ ^ static_cast<unsigned char>(character));
}

std::uint64_t Random::next() { return mix(state_++); }

std::size_t Random::message_bytes(std::size_t most) {
  constexpr std::array<std::size_t, 16> edges = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 63, 64, 65, 255, 4097};
  if (below(std::size_t{2}) == 0) return std::min(edges[below(edges.size())], most);
  // Every order of magnitude is as likely as every other.
  std::size_t bits = 1;
  while ((most >> bits) != 0) ++bits;
  const std::size_t bound = std::size_t{1} << (1 + below(bits));
  return std::min(below(bound), most);
}

std::size_t Random::offset() {
  const std::size_t any = below(std::size_t{512});
  return below(std::size_t{3}) == 0 ? any / 16 * 16 : any;
}

std::byte pattern_byte(std::uint64_t key, std::size_t index) {
  return static_cast<std::byte>(mix(mix(key) + index / 8) >> (8 * (index % 8)));
}

std::vector<std::byte> pattern(std::uint64_t key, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t first = 0; first < bytes; first += 8) {
    const std::uint64_t word = mix(mix(key) + first / 8);
    for (std::size_t i = first; i < std::min(first + 8, bytes); ++i)
      data[i] = static_cast<std::byte>(word >> (8 * (i % 8)));
  }
  return data;
}

void check_bytes(const std::vector<std::byte>& expected, const std::vector<std::byte>& observed,
                 std::string_view what) {
  BEELINE_CHECK_EQ(expected.size(), observed.size());
  const auto difference = std::mismatch(expected.begin(), expected.end(), observed.begin());
  if (difference.first == expected.end()) return;
  const auto wrong =
      std::inner_product(expected.begin(), expected.end(), observed.begin(), std::size_t{0}, std::plus<>(),
                         [](std::byte a, std::byte b) -> std::size_t { return a == b ? 0 : 1; });
  throw CheckFailure(fmt::format(
      "{}: byte {} of {} is {:#04x} instead of {:#04x}; {} bytes are wrong", what, difference.first - expected.begin(),
      expected.size(), std::to_integer<int>(*difference.second), std::to_integer<int>(*difference.first), wrong));
}

}  // namespace beeline_test
