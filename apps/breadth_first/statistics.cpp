// SPDX-License-Identifier: Apache-2.0
#include "statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace breadth_first {

Statistics statistics_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t count = values.size(), last = count - 1;
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(count);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto middle = [&](std::size_t one, std::size_t other) { return (values[one] + values[other]) / 2; };
  return {.minimum = values.front(),
          .first_quartile = middle(last / 4, count / 4),
          .median = middle(last / 2, count / 2),
          .third_quartile = middle(last - last / 4, last - count / 4),
          .maximum = values.back(),
          .mean = mean,
          .deviation = count == 1 ? 0 : std::sqrt(squares / static_cast<double>(last))};
}

Statistics rates_of(const std::vector<double>& seconds, const std::vector<double>& edges) {
  std::vector<double> inverse(seconds.size());
  std::ranges::transform(seconds, edges, inverse.begin(), std::divides<>());
  const Statistics slow = statistics_of(inverse);
  const double roots = static_cast<double>(seconds.size());
  return {.minimum = 1 / slow.maximum,
          .first_quartile = 1 / slow.third_quartile,
          .median = 1 / slow.median,
          .third_quartile = 1 / slow.first_quartile,
          .maximum = 1 / slow.minimum,
          .mean = 1 / slow.mean,
          .deviation = roots == 1 ? 0 : slow.deviation / (slow.mean * slow.mean * std::sqrt(roots - 1))};
}

}  // namespace breadth_first
