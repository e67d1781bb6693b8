// SPDX-License-Identifier: Apache-2.0
#include "harness/record.hpp"

#include <iostream>

#include "environment/environment.hpp"
#include "environment/statistics.hpp"

namespace beeline::bench {

namespace {

using Json = nlohmann::ordered_json;

const char* text(Unit unit) {
  static constexpr const char* names[] = {"us", "GB/s", "Mmsg/s", "Gupdate/s", "requests"};
  return names[static_cast<int>(unit)];
}

Json object_of(const Settings& settings) {
  Json object = Json::object();
  for (const auto& [name, value] : settings)
    object[name] = std::visit([](const auto& held) { return Json(held); }, value);
  return object;
}

Json head(const std::string& operation, const std::string& method, std::uint64_t bytes, int ranks) {
  return {{"event", "result"},      {"schema_version", schema_version},
          {"operation", operation}, {"method", method},
          {"bytes", bytes},         {"ranks", ranks}};
}

/// A result's fields in their order; fields without an argument here are null.
Json result(const std::string& operation, const std::string& method, std::uint64_t bytes, int ranks) {
  Json record = head(operation, method, bytes, ranks);
  for (const char* field :
       {"available", "reason", "unit", "median", "bus_gb_per_s", "relative_deviation", "iterations", "samples",
        "cpu_cores", "verified", "seed", "peer_of", "baseline", "ratio_to_baseline", "settings"})
    record[field] = nullptr;
  return record;
}

}  // namespace

Json result_record(const Measurement& measurement, const Outcome& outcome, int ranks, const Measurement* peer,
                   const Outcome* baseline) {
  Json record = result(measurement.operation, measurement.method, measurement.bytes, ranks);
  const double middle = median(outcome.samples);
  record["available"] = true;
  record["unit"] = text(measurement.unit);
  record["median"] = middle;
  if (measurement.bus_factor)
    record["bus_gb_per_s"] = *measurement.bus_factor * static_cast<double>(measurement.bytes) / middle / 1e3;
  record["relative_deviation"] = relative_deviation(outcome.samples);
  record["iterations"] = outcome.iterations;
  record["samples"] = outcome.samples;
  if (outcome.wall_s > 0) record["cpu_cores"] = outcome.cpu_s / outcome.wall_s;
  if (outcome.verified) record["verified"] = *outcome.verified, record["seed"] = outcome.seed;
  if (measurement.peer_of) record["peer_of"] = *measurement.peer_of;
  if (peer != nullptr) record["baseline"] = peer->method;
  if (baseline != nullptr) record["ratio_to_baseline"] = middle / median(baseline->samples);
  record["settings"] = object_of(measurement.settings);
  return record;
}

Json unavailable_record(const Case& lacking, std::uint64_t bytes, int ranks, const std::string& reason) {
  Json record = result(lacking.operation, lacking.method, bytes, ranks);
  record.update({{"available", false}, {"reason", reason}, {"samples", Json::array()}, {"settings", Json::object()}});
  return record;
}

Json energy_record(const Measurement& measurement, const std::vector<double>& samples, int ranks,
                   const std::string& reason) {
  Json record = head(measurement.operation, measurement.method, measurement.bytes, ranks);
  record["available"] = reason.empty();
  record["reason"] = reason.empty() ? Json(nullptr) : Json(reason);
  record["unit"] = measurement.bytes == 0 ? "nJ" : "nJ/word";
  record["median"] = reason.empty() ? Json(median(samples)) : Json(nullptr);
  record["samples"] = samples;
  record["peer_of"] = measurement.peer_of ? Json(*measurement.peer_of) : Json(nullptr);
  record["settings"] = object_of(measurement.settings);
  return record;
}

Json progress_record(const std::string& operation, const std::string& method, std::uint64_t bytes, std::size_t done,
                     std::size_t total) {
  return {{"event", "progress"}, {"operation", operation}, {"method", method},
          {"bytes", bytes},      {"done", done},           {"total", total}};
}

void print(const Json& record) { std::cout << record.dump() << std::endl; }

}  // namespace beeline::bench
