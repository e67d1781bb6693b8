// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Statistics of raw samples, and the rule when there are enough samples.

#include <cstddef>
#include <vector>

namespace beeline::bench {

/// Middle of `samples`, or the mean of the two middles. `samples` is not empty.
[[nodiscard]] double median(std::vector<double> samples);

/// Median distance from the median, as a share of the median.
[[nodiscard]] double relative_deviation(const std::vector<double>& samples);

/// A figure and its error.
struct Figure {
  double value = 0, error = 0;
};

/// The figure of at least one window: the median. Its error is the half-width of the 95 % interval of the windows' mean
/// (Student's t; zero for a single window) plus the uncertainty of the counter.
///   bound  uncertainty of the counter, in the unit of `windows`
[[nodiscard]] Figure figure_of(const std::vector<double>& windows, double bound);

/// The rule for stopping: at least `least` samples, and either they agree or there are too many. Slow operations need
/// fewer samples.
struct StopRule {
  std::size_t least = 20, most = 60, least_of_slow = 5;
  double relative_deviation = 0.01;
  double longest_ns = 5e8;
  ///   spent_ns  time that taking the samples took: a sample may be a part of it, as a quantile of many round trips
  [[nodiscard]] bool satisfied(const std::vector<double>& samples, double spent_ns) const;
};

}  // namespace beeline::bench
