// SPDX-License-Identifier: Apache-2.0
#include "harness/energy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "environment/statistics.hpp"

namespace beeline::bench {

namespace {

constexpr std::size_t least_rounds = 3, most_rounds = 5;
constexpr double largest_error = 0.02;
constexpr double run_ns = 1e8;       // of load, between two checks whether the window is over
constexpr double most_batches = 50;  // of a run: a kernel that times itself has 64 stamps
constexpr double bytes_of_word = 4;
// In seconds. A shorter window would not be long compared with the ticks of NVML's counter and the time of reading it.
constexpr double least_window = 1;
constexpr double beside_window = 0.8;  // seconds outside the window, for the load to settle and the counter to tick
constexpr double idle_seconds = 1.8;

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

bool is_quicker(const Measurement& measurement, const Outcome& one, const Outcome& other) {
  const bool is_time = measurement.unit == Unit::microseconds;
  return is_time == (median(one.samples) < median(other.samples));
}

}  // namespace

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

/// A measurement whose energy is metered.
struct EnergyBench::Row {
  const Measurement* measurement;
  Rounds rounds;  ///< of a run
  MeteredWindows windows;

  [[nodiscard]] double operations() const {
    return measurement->operations_per_iteration * static_cast<double>(rounds.iterations) * rounds.batches;
  }
  [[nodiscard]] double words() const {
    return measurement->bytes == 0 ? 1 : static_cast<double>(measurement->bytes) / bytes_of_word;
  }
  /// Whether more windows would not help: no window knows the joules, or all windows agree.
  [[nodiscard]] bool is_certain() const {
    const auto joules = LoadMeter::joules(windows.loads);
    return !joules || joules->error <= largest_error * joules->value;
  }
};

/// The plan for metering a task's rows.
struct EnergyBench::Plan {
  std::size_t rows;  ///< number of rows that fit
  double row_s;      ///< time of a row in a round
  double end_s;      ///< a round that would end later does not begin
};

EnergyBench::EnergyBench(Bench& bench)
    : bench_(bench), meter_(bench.world(), static_cast<std::int64_t>(bench.options().energy_ms) * 1'000'000),
      begin_s_(now_s()) {}

double EnergyBench::seconds_left() const {
  const std::uint64_t budget = bench_.options().energy_budget_s;
  return budget == 0 ? 1e9 : begin_s_ + static_cast<double>(budget) - now_s();
}

EnergyBench::Plan EnergyBench::plan(std::size_t rows, std::size_t tasks_left) {
  const double most = static_cast<double>(bench_.options().energy_ms) / 1e3, least = std::min(least_window, most);
  const double left = seconds_left(), share = left / static_cast<double>(tasks_left);
  const double fitting = (left - idle_seconds) / (least_rounds * (least + beside_window));
  const std::size_t metered = std::min(rows, static_cast<std::size_t>(std::max(fitting, 0.0)));
  const double row_s = (share - idle_seconds) / static_cast<double>(least_rounds * std::max<std::size_t>(metered, 1));
  const double window = std::clamp(row_s - beside_window, least, most);
  meter_.set_window(static_cast<std::int64_t>(window * 1e9));
  return {bench_.from_leader(metered), window + beside_window, now_s() + share - idle_seconds};
}

EnergyBench::Row EnergyBench::row_of(const Measurement& measurement, std::uint32_t iterations) const {
  const std::vector<double> times = measurement.time({iterations});
  const double wanted = bench_.leads() ? std::clamp(run_ns / std::max(times.front(), 1.0), 1.0, most_batches) : 0;
  const auto batches = static_cast<std::uint32_t>(bench_.from_leader(static_cast<std::uint64_t>(wanted)));
  return {&measurement, {iterations, batches}, {}};  // without warm-up, which would be load that is not counted
}

void EnergyBench::run(const std::vector<Measurement>& measurements, const std::vector<Outcome>& outcomes,
                      std::size_t done, std::size_t total) {
  const Plan planned = plan(measurements.size(), total - done);
  std::vector<Row> rows;
  for (std::size_t i = 0; i < planned.rows; ++i)
    rows.push_back(row_of(measurements[i], static_cast<std::uint32_t>(bench_.from_leader(outcomes[i].iterations))));
  if (!rows.empty()) meter(rows, planned, done, total);
  if (!bench_.leads()) return;
  for (const Row& row : rows) print_record(row);
  const std::string reason = fmt::format("out of budget: {} s of metering were granted, and the rows before took them",
                                         bench_.options().energy_budget_s);
  for (std::size_t i = planned.rows; i < measurements.size(); ++i)
    print(energy_record(measurements[i], {}, bench_.world().size(), reason));
}

void EnergyBench::meter(std::vector<Row>& rows, const Plan& plan, std::size_t done, std::size_t total) {
  const double task_s = least_rounds * plan.row_s * static_cast<double>(rows.size()) + idle_seconds;
  const auto say = [&](const Measurement& measurement, std::size_t windows) {
    if (!bench_.leads()) return;
    const double share = std::min(static_cast<double>(windows) * plan.row_s / task_s, 1.0);
    const double tasks = static_cast<double>(total - done) - share;
    auto line = progress_record(measurement.operation, measurement.method, measurement.bytes, done, total);
    line["done"] = std::round(100 * (static_cast<double>(done) + share)) / 100;
    line["left_s"] = std::round(std::clamp(tasks * task_s, 0.0, std::max(seconds_left(), 0.0)));
    print(line);
  };
  for (Row& row : rows) row.windows.idle_before = meter_.idle();
  std::size_t windows = 0;
  for (std::size_t round = 1, is_enough = 0; is_enough == 0; ++round) {
    // Each round begins with another row, so that no row always follows the same load or the idle GPUs.
    for (std::size_t i = 0; i < rows.size(); ++i, ++windows) {
      Row& row = rows[(i + round) % rows.size()];
      say(*row.measurement, windows);
      row.windows.loads.push_back(meter_.run([&] { static_cast<void>(row.measurement->time(row.rounds)); }));
    }
    const bool fits = now_s() + plan.row_s * static_cast<double>(rows.size()) <= plan.end_s;
    const bool is_certain = std::ranges::all_of(rows, &Row::is_certain);
    is_enough = bench_.from_leader(round >= most_rounds || (round >= least_rounds && (is_certain || !fits)) ? 1 : 0);
  }
  meter_.meter_idle();
  for (Row& row : rows) row.windows.idle_after = meter_.idle();
}

void EnergyBench::print_record(const Row& row) const {
  const double units = row.operations() * row.words();
  const auto unknown =
      std::ranges::find_if(row.windows.loads, [](const MeteredLoad& load) { return !LoadMeter::joules(load); });
  std::vector<double> samples;
  if (unknown == row.windows.loads.end())
    for (const MeteredLoad& load : row.windows.loads) samples.push_back(1e9 * *LoadMeter::joules(load) / units);
  auto record = energy_record(*row.measurement, samples, bench_.world().size(),
                              samples.empty() ? LoadMeter::reason(*unknown) : "");
  record["energy"] = meter_.record(row.windows, units);
  print(record);
}

}  // namespace beeline::bench
