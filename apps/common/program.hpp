// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What applications print: lines of JSON, on rank 0.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/host/world.hpp"
#include "common/devices.hpp"
#include "common/method.hpp"
#include "common/sampling.hpp"

namespace apps {

using Json = nlohmann::ordered_json;

/// Prints a line on rank 0, at once.
void print_line(int rank, const Json& line);

/// The line that `--list` prints for a method, in a world of this configuration.
[[nodiscard]] Json method_line(const MethodText& method, const beeline::Config& config);
/// The beginning of a result's line.
[[nodiscard]] Json result_line(const char* app, const MethodText& method, const beeline::World& world);
/// The same, of a program without ranks.
[[nodiscard]] Json result_line(const char* app, const MethodText& method, const Devices& devices);
/// The time of each sample in seconds, divided by `repeats`, the repetitions of the work.
[[nodiscard]] Json samples_seconds(const std::vector<Sample>& all, int repeats = 1);

/// Prints how many phases of a method have ended.
class Progress {
 public:
  Progress(const beeline::World& world, std::string method, int total)
      : Progress(world.rank(), std::move(method), total) {}
  /// In a program without ranks.
  Progress(std::string method, int total) : Progress(0, std::move(method), total) {}
  /// Counts one more phase as ended.
  void advance();

 private:
  Progress(int rank, std::string method, int total);
  void print() const;

  int rank_, total_, done_ = 0;
  std::string method_;
};

}  // namespace apps
