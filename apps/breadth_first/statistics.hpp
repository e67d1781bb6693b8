// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The statistics that Graph500 asks for. Source: Graph500 specification, section "Output".

#include <vector>

namespace breadth_first {

/// Quartiles as the official program computes them: the mean of the two nearest values; `deviation` is the sample's.
struct Statistics {
  double minimum, first_quartile, median, third_quartile, maximum, mean, deviation;
};

/// `values` must not be empty; the deviation of one value is 0.
[[nodiscard]] Statistics statistics_of(std::vector<double> values);

/// Rates of searches (edges per second): the mean is harmonic, with its standard error after Norris (Annals of
/// Mathematical Statistics 11, 1940) as deviation.
///   seconds  of each search;  edges  of each search
[[nodiscard]] Statistics rates_of(const std::vector<double>& seconds, const std::vector<double>& edges);

}  // namespace breadth_first
