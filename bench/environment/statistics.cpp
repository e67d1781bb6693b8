// SPDX-License-Identifier: Apache-2.0
#include "environment/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

namespace beeline::bench {

double median(std::vector<double> samples) {
  const std::size_t middle = samples.size() / 2;
  std::nth_element(samples.begin(), samples.begin() + middle, samples.end());
  const double upper = samples[middle];
  if (samples.size() % 2 == 1) return upper;
  return (*std::max_element(samples.begin(), samples.begin() + middle) + upper) / 2;
}

double relative_deviation(const std::vector<double>& samples) {
  const double center = median(samples);
  std::vector<double> distances;
  distances.reserve(samples.size());
  for (double sample : samples) distances.push_back(std::abs(sample - center));
  return center == 0 ? 0 : median(std::move(distances)) / std::abs(center);
}

Figure figure_of(const std::vector<double>& windows, double bound) {
  // Two-sided 95 % quantiles of Student's t for 1, 2, ... degrees of freedom; the last is also used for more degrees,
  // where it is too large by at most a quarter.
  constexpr double quantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262};
  const std::size_t count = windows.size();
  if (count < 2) return {windows.front(), bound};
  const double mean = std::accumulate(windows.begin(), windows.end(), 0.0) / static_cast<double>(count);
  double squares = 0;
  for (const double one : windows) squares += (one - mean) * (one - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(count - 1));
  const double t = quantiles[std::min(count - 2, std::size(quantiles) - 1)];
  return {median(windows), t * deviation / std::sqrt(static_cast<double>(count)) + bound};
}

bool StopRule::satisfied(const std::vector<double>& samples, double spent_ns) const {
  if (spent_ns >= longest_ns && samples.size() >= least_of_slow) return true;
  if (samples.size() < least) return false;
  return samples.size() >= most || bench::relative_deviation(samples) <= relative_deviation;
}

}  // namespace beeline::bench
