// SPDX-License-Identifier: Apache-2.0
#include "harness/record.hpp"

#include <iostream>

#include "harness/statistics.hpp"

namespace beeline::bench {

namespace {

using Json = nlohmann::ordered_json;

const char* text(Unit unit) {
  static constexpr const char* names[] = {"us", "GB/s", "Mmsg/s", "Gupdate/s"};
  return names[static_cast<int>(unit)];
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
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

}  // namespace

Json result_record(const Measurement& measurement, const Outcome& outcome, int ranks, const Measurement* peer,
                   const Outcome* baseline) {
  Json record = head(measurement.operation, measurement.method, measurement.bytes, ranks);
  const double middle = median(outcome.samples);
  record["available"] = true;
  record["reason"] = nullptr;
  record["unit"] = text(measurement.unit);
  record["median"] = middle;
  record["bus_gb_per_s"] = measurement.bus_factor
                               ? Json(*measurement.bus_factor * static_cast<double>(measurement.bytes) / middle / 1e3)
                               : Json(nullptr);
  record["relative_deviation"] = relative_deviation(outcome.samples);
  record["iterations"] = outcome.iterations;
  record["samples"] = outcome.samples;
  record["verified"] = or_null(outcome.verified);
  record["seed"] = outcome.verified ? Json(outcome.seed) : Json(nullptr);
  record["peer_of"] = or_null(measurement.peer_of);
  record["baseline"] = peer == nullptr ? Json(nullptr) : Json(peer->method);
  record["ratio_to_baseline"] = baseline == nullptr ? Json(nullptr) : Json(middle / median(baseline->samples));
  record["settings"] = object_of(measurement.settings);
  return record;
}

Json unavailable_record(const Case& lacking, std::uint64_t bytes, int ranks, const std::string& reason) {
  Json record = head(lacking.operation, lacking.method, bytes, ranks);
  record["available"] = false;
  record["reason"] = reason;
  for (const char* missing : {"unit", "median", "bus_gb_per_s", "relative_deviation", "iterations"})
    record[missing] = nullptr;
  record["samples"] = Json::array();
  for (const char* missing : {"verified", "seed", "peer_of", "baseline", "ratio_to_baseline"})
    record[missing] = nullptr;
  record["settings"] = Json::object();
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
  record["peer_of"] = or_null(measurement.peer_of);
  record["settings"] = object_of(measurement.settings);
  return record;
}

Json progress_record(const Case& next, std::uint64_t bytes, std::size_t done, std::size_t total) {
  return {{"event", "progress"},   {"operation", next.operation},
          {"method", next.method}, {"bytes", bytes},
          {"done", done},          {"total", total}};
}

void print(const Json& record) { std::cout << record.dump() << std::endl; }

}  // namespace beeline::bench
