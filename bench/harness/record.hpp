// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The records: JSON lines on standard output. Numbers are JSON numbers, missing values are null.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/measurement.hpp"

namespace beeline::bench {

/// The results of a measurement.
struct Outcome {
  std::vector<double> samples;
  std::uint32_t iterations = 0;  ///< operations in a batch; a sample is the mean over a batch
  double cpu_s = 0, wall_s = 0;  ///< of the leading rank's process during sampling
  std::optional<bool> verified;  ///< none: verification was switched off
  std::uint64_t seed = 0;
};

/// The line of a measured method; `peer` and `baseline` are the bare peer it is compared with and its outcome, or
/// nullptr.
[[nodiscard]] nlohmann::ordered_json result_record(const Measurement& measurement, const Outcome& outcome, int ranks,
                                                   const Measurement* peer, const Outcome* baseline);

/// The line of a method that this machine lacks.
[[nodiscard]] nlohmann::ordered_json unavailable_record(const Case& lacking, std::uint64_t bytes, int ranks,
                                                        const std::string& reason);

/// The line of a method's energy: `samples` in nanojoules, for each word of 4 bytes that is moved, or for each
/// operation without data; if there are none, `reason` says why.
[[nodiscard]] nlohmann::ordered_json energy_record(const Measurement& measurement, const std::vector<double>& samples,
                                                   int ranks, const std::string& reason);

/// The line that shows a run's progress.
[[nodiscard]] nlohmann::ordered_json progress_record(const std::string& operation, const std::string& method,
                                                     std::uint64_t bytes, std::size_t done, std::size_t total);

/// Prints one line, without buffering.
void print(const nlohmann::ordered_json& record);

}  // namespace beeline::bench
