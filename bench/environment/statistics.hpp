// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What is made of raw samples, and when there are enough of them.

#include <cstddef>
#include <vector>

namespace beeline::bench {

/// Middle of `samples`, or the mean of the two middles. `samples` is not empty.
[[nodiscard]] double median(std::vector<double> samples);

/// Median distance from the median, as a share of the median.
[[nodiscard]] double relative_deviation(const std::vector<double>& samples);

/// A figure, and how far it may be off.
struct Figure {
  double value = 0, error = 0;
};

/// Of at least one window: the median. Its error is the half-width of the 95 % interval of the windows' mean (Student's
/// t; none of a single window), and what the counter leaves open.
///   bound  of the counter, in the unit of `windows`
[[nodiscard]] Figure figure_of(const std::vector<double>& windows, double bound);

/// When to stop: enough samples, and either they agree or there are too many. Of what takes long, fewer are enough.
struct StopRule {
  std::size_t least = 20, most = 60, least_of_slow = 5;
  double relative_deviation = 0.01;
  double longest_ns = 5e8;
  /// spent_ns  time that the samples took together
  [[nodiscard]] bool satisfied(const std::vector<double>& samples, double spent_ns) const;
};

}  // namespace beeline::bench
