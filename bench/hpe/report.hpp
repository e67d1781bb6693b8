// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Measurements of one process with several devices, printed as results like those of beeline-bench.

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace beeline::bench::hpe {

/// What a row of results says about its measurement.
struct Row {
  std::string operation, method, unit;
  std::size_t bytes = 0;
  nlohmann::ordered_json settings = nlohmann::ordered_json::object();
};

/// The samples of a measurement, in the row's unit.
struct Samples {
  std::vector<double> values;
  int operations = 1;  ///< in each sample
};

constexpr int sample_count = 20;

/// Seconds since some point in the past.
[[nodiscard]] double now_s();

/// Microseconds of an operation.
///   batch(n)  does n operations
[[nodiscard]] Samples time_of(const std::function<void(int)>& batch);

///   verified  no value if the operation moves no data
void print(const Row& row, const Samples& samples, std::optional<bool> verified);
/// A method that this machine lacks.
void print_lacking(const Row& row, const std::string& reason);

}  // namespace beeline::bench::hpe
