// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Joules of measurements.

#include <vector>

#include "environment/load_meter.hpp"
#include "harness/measurement.hpp"
#include "harness/record.hpp"

namespace beeline::bench {

class EnergyBench {
 public:
  /// Collective. Meters idle power.
  explicit EnergyBench(Bench& bench);

  /// Collective. Meters the quickest setting of each method, again and again until the trials agree, and prints their
  /// records.
  void run(const std::vector<Measurement>& measurements, const std::vector<Outcome>& outcomes);

 private:
  void measure(const Measurement& measurement, std::uint32_t iterations);
  void print_record(const Measurement& measurement, const std::vector<MeteredLoad>& loads, double operations) const;
  Bench& bench_;
  LoadMeter meter_;
};

}  // namespace beeline::bench
