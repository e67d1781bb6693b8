// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>

#include "tests/support/check.hpp"

namespace beeline_test {

namespace {

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

std::vector<std::byte> pattern(std::uint64_t key, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  fill_pattern(data.data(), key, bytes);
  return data;
}

void check_bytes(const std::vector<std::byte>& expected, const std::vector<std::byte>& observed,
                 std::string_view what) {
  BEELINE_CHECK_EQ(expected.size(), observed.size());
  if (expected.empty() || std::memcmp(expected.data(), observed.data(), expected.size()) == 0) return;
  const auto difference = std::mismatch(expected.begin(), expected.end(), observed.begin());
  const auto wrong =
      std::inner_product(expected.begin(), expected.end(), observed.begin(), std::size_t{0}, std::plus<>(),
                         [](std::byte a, std::byte b) -> std::size_t { return a == b ? 0 : 1; });
  throw CheckFailure(fmt::format(
      "{}: byte {} of {} is {:#04x} instead of {:#04x}; {} bytes are wrong", what, difference.first - expected.begin(),
      expected.size(), std::to_integer<int>(*difference.second), std::to_integer<int>(*difference.first), wrong));
}

}  // namespace beeline_test
