// SPDX-License-Identifier: Apache-2.0
#include "harness/statistics.hpp"

#include <algorithm>
#include <cmath>

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
  return center == 0 ? 0 : median(std::move(distances)) / center;
}

bool StopRule::satisfied(const std::vector<double>& samples, double spent_ns) const {
  if (spent_ns >= longest_ns && samples.size() >= least_of_slow) return true;
  if (samples.size() < least) return false;
  return samples.size() >= most || bench::relative_deviation(samples) <= relative_deviation;
}

}  // namespace beeline::bench
