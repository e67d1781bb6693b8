// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Energy of measurements.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "environment/load_meter.hpp"
#include "harness/measurement.hpp"
#include "harness/record.hpp"

namespace beeline::bench {

/// Indices of the fastest setting of each method.
[[nodiscard]] std::vector<std::size_t> quickest(const std::vector<Measurement>& measurements,
                                                const std::vector<Outcome>& outcomes);

class EnergyBench {
 public:
  /// Collective. Meters idle power. The time budget of the options starts now.
  explicit EnergyBench(Bench& bench);

  /// Collective. Meters the measurements in turns, each at least three times, until their errors are small or their
  /// part of the budget is spent; then prints their records. The records of measurements that do not fit into the
  /// budget contain the reason.
  ///   done, total  numbers of tasks: this task and the following ones share the rest of the budget
  void run(const std::vector<Measurement>& measurements, const std::vector<Outcome>& outcomes, std::size_t done,
           std::size_t total);

 private:
  struct Row;
  struct Plan;
  [[nodiscard]] double seconds_left() const;
  [[nodiscard]] Plan plan(std::size_t rows, std::size_t tasks_left);
  [[nodiscard]] Row row_of(const Measurement& measurement, std::uint32_t iterations) const;
  void meter(std::vector<Row>& rows, const Plan& plan, std::size_t done, std::size_t total);
  void print_record(const Row& row) const;
  Bench& bench_;
  LoadMeter meter_;
  double begin_s_;
};

}  // namespace beeline::bench
