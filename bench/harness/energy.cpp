// SPDX-License-Identifier: Apache-2.0
#include "harness/energy.hpp"

#include <algorithm>

#include "harness/statistics.hpp"

namespace beeline::bench {

namespace {

constexpr std::size_t least_trials = 2, most_trials = 5;
constexpr double largest_spread = 0.02;
constexpr double run_ns = 1e8;       // of the load, between two looks whether the window is over
constexpr double most_batches = 50;  // of a run: a kernel that times itself has 64 stamps
constexpr double bytes_of_word = 4;

/// (largest - smallest) / median.
double spread_of(const std::vector<double>& samples) {
  const auto [least, most] = std::minmax_element(samples.begin(), samples.end());
  return (*most - *least) / median(samples);
}

/// Joules of each load, of those that know them.
std::vector<double> joules_of(const std::vector<MeteredLoad>& loads) {
  std::vector<double> known;
  for (const MeteredLoad& load : loads)
    if (const auto joules = LoadMeter::joules(load)) known.push_back(*joules);
  return known;
}

bool is_quicker(const Measurement& measurement, const Outcome& one, const Outcome& other) {
  const bool is_time = measurement.unit == Unit::microseconds;
  return is_time == (median(one.samples) < median(other.samples));
}

/// Indices of each method's quickest setting.
std::vector<std::size_t> quickest(const std::vector<Measurement>& measurements, const std::vector<Outcome>& outcomes) {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    const auto same = std::find_if(chosen.begin(), chosen.end(), [&](std::size_t other) {
      return measurements[other].method == measurements[i].method &&
             measurements[other].operation == measurements[i].operation;
    });
    if (same == chosen.end())
      chosen.push_back(i);
    else if (is_quicker(measurements[i], outcomes[i], outcomes[*same]))
      *same = i;
  }
  return chosen;
}

}  // namespace

EnergyBench::EnergyBench(Bench& bench)
    : bench_(bench), meter_(bench.world(), static_cast<std::int64_t>(bench.options().energy_ms) * 1'000'000) {}

void EnergyBench::run(const std::vector<Measurement>& measurements, const std::vector<Outcome>& outcomes) {
  std::vector<std::size_t> chosen;
  if (bench_.leads()) chosen = quickest(measurements, outcomes);
  for (std::uint64_t at = 0, count = bench_.from_leader(chosen.size()); at < count; ++at) {
    const std::uint64_t which = bench_.from_leader(bench_.leads() ? chosen[at] : 0);
    measure(measurements[which], outcomes[which].iterations);
  }
}

void EnergyBench::measure(const Measurement& measurement, std::uint32_t iterations) {
  const std::vector<double> times = measurement.time({iterations});
  const double wanted = bench_.leads() ? std::clamp(run_ns / std::max(times.front(), 1.0), 1.0, most_batches) : 0;
  const auto batches = static_cast<std::uint32_t>(bench_.from_leader(static_cast<std::uint64_t>(wanted)));
  const Rounds rounds{iterations, batches};  // what warms up would be load that nobody counts
  std::vector<MeteredLoad> loads;
  for (bool is_enough = false; !is_enough;) {
    meter_.cool_down();
    loads.push_back(meter_.run([&] { static_cast<void>(measurement.time(rounds)); }));
    const std::vector<double> joules = joules_of(loads);
    const bool agrees = joules.size() != loads.size() || spread_of(joules) <= largest_spread;
    is_enough = loads.size() >= most_trials || (loads.size() >= least_trials && agrees);
    is_enough = bench_.from_leader(is_enough ? 1 : 0) != 0;
  }
  const double rounds_of_run = static_cast<double>(iterations) * batches;
  if (bench_.leads()) print_record(measurement, loads, measurement.operations_per_iteration * rounds_of_run);
}

void EnergyBench::print_record(const Measurement& measurement, const std::vector<MeteredLoad>& loads,
                               double operations) const {
  const double words = measurement.bytes == 0 ? 1 : static_cast<double>(measurement.bytes) / bytes_of_word;
  std::vector<double> samples;
  for (const double joules : joules_of(loads)) samples.push_back(1e9 * joules / operations / words);
  const auto unknown = std::ranges::find_if(loads, [](const MeteredLoad& load) { return !LoadMeter::joules(load); });
  const bool is_known = unknown == loads.end();
  auto record = energy_record(measurement, is_known ? samples : std::vector<double>{}, bench_.world().size(),
                              is_known ? "" : LoadMeter::reason(*unknown));
  record["energy"] = meter_.record(loads, operations * words);
  record["energy"]["spread"] = is_known ? nlohmann::ordered_json(spread_of(samples)) : nlohmann::ordered_json(nullptr);
  print(record);
}

}  // namespace beeline::bench
