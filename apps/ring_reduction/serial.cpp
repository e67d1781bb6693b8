// SPDX-License-Identifier: Apache-2.0
#include "serial.hpp"

#include <bit>
#include <cmath>
#include <thread>

#include "problem.hpp"

namespace ring_reduction {

namespace {

float reduced(std::size_t index, int ranks, std::uint32_t set, int reductions) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += initial_value(set, static_cast<std::uint32_t>(rank), index);
  // From the second on every rank brings the same.
  for (int more = 1; more < reductions; ++more) sum *= static_cast<float>(ranks);
  return sum;
}

}  // namespace

std::vector<float> serial_reduction(std::size_t count, int ranks, std::uint32_t set, int reductions, int threads) {
  std::vector<float> result(count);
  const auto share = [&](std::size_t thread) {
    const auto all = static_cast<std::size_t>(threads);
    for (std::size_t i = count / all * thread; i < (thread + 1 == all ? count : count / all * (thread + 1)); ++i)
      result[i] = reduced(i, ranks, set, reductions);
  };
  std::vector<std::thread> others;
  for (std::size_t thread = 1; thread < static_cast<std::size_t>(threads); ++thread) others.emplace_back(share, thread);
  share(0);
  for (std::thread& other : others) other.join();
  return result;
}

std::uint64_t checksum(const std::vector<float>& values) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const float value : values) hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001b3u;
  return hash;
}

double max_error(const std::vector<float>& expected, const std::vector<float>& observed) {
  double largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(static_cast<double>(expected[i]) - static_cast<double>(observed[i]));
    if (!(error <= largest)) largest = std::isnan(error) ? INFINITY : error;
  }
  return largest;
}

}  // namespace ring_reduction
