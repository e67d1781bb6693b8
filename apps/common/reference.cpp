// SPDX-License-Identifier: Apache-2.0
#include "common/reference.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace apps {

int hardware_threads() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

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

}  // namespace apps
