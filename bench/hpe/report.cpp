// SPDX-License-Identifier: Apache-2.0
#include "hpe/report.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "environment/environment.hpp"
#include "environment/statistics.hpp"

namespace beeline::bench::hpe {

namespace {

constexpr double batch_s = 3e-3;
constexpr int ranks = 1;

nlohmann::ordered_json record_of(const Row& row) {
  return {{"event", "result"},          {"schema_version", schema_version},
          {"operation", row.operation}, {"method", row.method},
          {"bytes", row.bytes},         {"ranks", ranks}};
}

void print_line(const nlohmann::ordered_json& record) {
  std::printf("%s\n", record.dump().c_str());
  std::fflush(stdout);
}

}  // namespace

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Samples time_of(const std::function<void(int)>& batch) {
  batch(2);
  double begun = now_s();
  batch(3);
  const double one_s = (now_s() - begun) / 3;
  Samples samples;
  samples.operations = static_cast<int>(std::clamp(batch_s / std::max(one_s, 1e-9), 3.0, 20000.0));
  for (int sample = 0; sample < sample_count; ++sample) {
    begun = now_s();
    batch(samples.operations);
    samples.values.push_back((now_s() - begun) * 1e6 / samples.operations);
  }
  return samples;
}

void print(const Row& row, const Samples& samples, std::optional<bool> verified) {
  nlohmann::ordered_json record = record_of(row);
  record.update({{"available", true},
                 {"reason", nullptr},
                 {"unit", row.unit},
                 {"median", median(samples.values)},
                 {"relative_deviation", relative_deviation(samples.values)},
                 {"iterations", samples.operations}});
  record["verified"] = verified ? nlohmann::ordered_json(*verified) : nlohmann::ordered_json(nullptr);
  record["samples"] = samples.values;
  record["settings"] = row.settings;
  print_line(record);
}

void print_lacking(const Row& row, const std::string& reason) {
  nlohmann::ordered_json record = record_of(row);
  record.update({{"available", false},
                 {"reason", reason},
                 {"unit", row.unit},
                 {"median", nullptr},
                 {"samples", nlohmann::ordered_json::array()},
                 {"verified", nullptr}});
  record["settings"] = row.settings;
  print_line(record);
}

}  // namespace beeline::bench::hpe
