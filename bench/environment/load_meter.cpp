// SPDX-License-Identifier: Apache-2.0
#include "environment/load_meter.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <span>
#include <thread>

#include "environment/gpu_state.hpp"

namespace beeline::bench {

namespace {

using Json = nlohmann::ordered_json;
using energy::Kind;
using energy::Measured;
using energy::ShortWindow;
using Clock = std::chrono::steady_clock;

constexpr Kind kinds[] = {Kind::gpu, Kind::cpu, Kind::dram};

std::vector<std::string> gpus_of(World& world) {
  std::vector<std::string> gpus;
  for (int rank = 0; rank < world.size(); ++rank)
    if (const Device& device = world.device(rank);
        device.is_gpu() && std::find(gpus.begin(), gpus.end(), device.uuid) == gpus.end())
      gpus.push_back(device.uuid);
  return gpus;
}

energy::Sources sources_of(const World& world, const std::vector<std::string>& gpus) {
  const std::string& powercap = world.config().powercap;
  return gpus.empty() ? energy::rapl_sources(powercap) : energy::machine_sources(gpus, powercap);
}

constexpr std::int64_t settling_ns = 300'000'000;  // time for clocks and voltages to settle after a load begins or ends

void sleep_ns(std::int64_t time) { std::this_thread::sleep_for(std::chrono::nanoseconds(time)); }

/// Power of one kind of component.
struct Power {
  double watts, error_watts;
};

std::optional<Power> power_of(const Measured& measured, Kind kind) {
  std::optional<Power> sum;
  for (const energy::ComponentEnergy& part : measured.components) {
    if (part.component.kind != kind) continue;
    if (!part.watts) return std::nullopt;
    if (!sum) sum = {0, 0};
    sum->watts += *part.watts;
    sum->error_watts += *part.watts * part.error.value_or(0);
  }
  return sum;
}

std::string reason_of(const Measured& measured, Kind kind) {
  for (const energy::ComponentEnergy& part : measured.components)
    if (part.component.kind == kind && !part.reason.empty()) return part.reason;
  return "no rank has one";
}

/// Sum over all known kinds; 0 if none is known.
Power whole_power_of(const Measured& measured) {
  Power sum{0, 0};
  for (const Kind kind : kinds)
    if (const auto part = power_of(measured, kind)) sum.watts += part->watts, sum.error_watts += part->error_watts;
  return sum;
}

/// Meters until the power of a window's second half equals that of the whole window within the errors of both, or until
/// a number of windows were tried; each window begins in the middle of the previous one. Returns the last window.
Measured measure_steady(energy::Meter& meter, std::int64_t window_ns) {
  constexpr double tolerance = 0.01;
  constexpr int most_halves = 6;
  auto first = meter.start();
  sleep_ns(window_ns / 2);
  for (int halves = 2;; ++halves) {
    const auto second = meter.start();
    sleep_ns(window_ns / 2);
    const Power half = whole_power_of(meter.stop(second, ShortWindow::widen));
    const Measured measured = meter.stop(first, ShortWindow::widen);
    const Power whole = whole_power_of(measured);
    const bool is_known = half.watts > 0 && whole.watts > 0;  // a half may be too short for the energy counter
    const double most = tolerance * whole.watts + half.error_watts + whole.error_watts;
    if (!is_known || halves >= most_halves || std::abs(half.watts - whole.watts) <= most) return measured;
    first = second;
  }
}

double seconds_of_run(const MeteredLoad& load) { return load.seconds / static_cast<double>(load.runs); }

/// Idle power around a load: the mean of the windows before and after it; half their difference adds to the error.
std::optional<Power> idle_power_of(const MeteredWindows& windows, Kind kind) {
  const auto before = power_of(windows.idle_before, kind), after = power_of(windows.idle_after, kind);
  if (!before || !after) return std::nullopt;
  return Power{(before->watts + after->watts) / 2,
               (before->error_watts + after->error_watts) / 2 + std::abs(before->watts - after->watts) / 2};
}

/// The joules per unit of one kind of component, with and without idle power.
Json component(Kind kind, const MeteredWindows& windows, double units) {
  Json part = Json::object();
  for (const char* name : {"watts", "idle_watts", "error_watts", "joules", "joules_error", "joules_above_idle",
                           "joules_above_idle_error", "reason"})
    part[name] = nullptr;
  const auto idle = idle_power_of(windows, kind);
  if (idle) part["idle_watts"] = idle->watts;
  std::vector<double> watts, joules, above;
  double bound_watts = 0, bound_joules = 0, bound_above = 0;
  for (const MeteredLoad& load : windows.loads) {
    const auto power = power_of(load.measured, kind);
    if (!power) {
      part["reason"] = reason_of(load.measured, kind);
      return part;
    }
    const double seconds = seconds_of_run(load) / units;
    watts.push_back(power->watts);
    joules.push_back(power->watts * seconds);
    above.push_back((power->watts - (idle ? idle->watts : 0)) * seconds);
    bound_watts = std::max(bound_watts, power->error_watts);
    bound_joules = std::max(bound_joules, power->error_watts * seconds);
    bound_above = std::max(bound_above, (power->error_watts + (idle ? idle->error_watts : 0)) * seconds);
  }
  const auto say = [&](const char* name, const char* error, const Figure& figure) {
    part[name] = figure.value, part[error] = figure.error;
  };
  say("watts", "error_watts", figure_of(watts, bound_watts));
  say("joules", "joules_error", figure_of(joules, bound_joules));
  const Figure beside_idle = figure_of(above, bound_above);
  if (idle && beside_idle.value > beside_idle.error) say("joules_above_idle", "joules_above_idle_error", beside_idle);
  return part;
}

/// Spread of the windows: (largest - smallest) / median.
double spread_of(const std::vector<double>& windows) {
  const auto [least, most] = std::minmax_element(windows.begin(), windows.end());
  return (*most - *least) / median(windows);
}

/// Power over time by component, if the device or its counter shows power.
Json power_over_time(const MeteredLoad& load, const std::vector<energy::Component>& components) {
  Json all = Json::object();
  for (const energy::Sample& sample : load.power)
    if (sample.watts)
      all[components[sample.component].name].push_back(
          {static_cast<double>(sample.time_ns - load.power.front().time_ns) / 1e9, *sample.watts});
  return all;
}

}  // namespace

void check_window(std::int64_t window_ns, const Config& config) {
  constexpr std::int64_t longest_rest_ns = 5'000'000'000;  // for a run that has begun, and for the meter's own work
  const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) / 1e9; };
  require(
      config.size == 1 || window_ns + longest_rest_ns < config.deadline_ns, Status::invalid_argument,
      fmt::format("--energy, --window: a window of {} s, for which ranks wait: BEELINE_DEADLINE_S={} has to be over {}",
                  seconds(window_ns), seconds(config.deadline_ns), seconds(window_ns + longest_rest_ns)));
}

LoadMeter::LoadMeter(World& world, std::int64_t window_ns)
    : world_(world), window_ns_(window_ns), gpus_(gpus_of(world)) {
  check_window(window_ns, world.config());
  if (world.rank() == 0) meter_ = std::make_unique<energy::Meter>(sources_of(world, gpus_));
  static_cast<void>(meter_idle());
}

std::uint64_t LoadMeter::from_leader(std::uint64_t value) const {
  const auto all = world_.allgather(std::as_bytes(std::span(&value, 1)));
  std::memcpy(&value, all.front().data(), sizeof value);
  return value;
}

double LoadMeter::cpu_seconds() const {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double mine = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                      static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  double all = 0;
  for (const auto& bytes : world_.allgather(std::as_bytes(std::span(&mine, 1)))) {
    double theirs = 0;
    std::memcpy(&theirs, bytes.data(), sizeof theirs);
    all = world_.config().threads ? theirs : all + theirs;  // ranks that are threads share one process
  }
  return all;
}

void LoadMeter::sample_power() {
  constexpr std::int64_t period_ns = 50'000'000;
  if (meter_ != nullptr) meter_->sample_every(period_ns);
}

const Measured& LoadMeter::meter_idle() {
  constexpr std::int64_t longest_ns = 1'000'000'000;
  if (meter_ != nullptr) {
    sleep_ns(std::min(settling_ns, window_ns_));
    idle_ = measure_steady(*meter_, std::min(longest_ns, window_ns_));
  }
  static_cast<void>(from_leader(0));  // the other ranks sleep in this call
  return idle_;
}

MeteredLoad LoadMeter::run(const std::function<void()>& work) {
  MeteredLoad load = run_once(work);
  const auto known = [&load] {
    return std::ranges::count_if(kinds, [&](Kind kind) { return power_of(load.measured, kind).has_value(); });
  };
  if (from_leader(known() < most_known_ ? 1 : 0) != 0) load = run_once(work);
  most_known_ = std::max(most_known_, known());
  return load;
}

MeteredLoad LoadMeter::run_once(const std::function<void()>& work) {
  if (meter_ != nullptr) static_cast<void>(meter_->take_samples());
  const auto settled = Clock::now() + std::chrono::nanoseconds(std::min(settling_ns, window_ns_));
  do work();
  while (from_leader(Clock::now() >= settled ? 1 : 0) == 0);
  MeteredLoad load;
  std::atomic<bool> is_over = false;
  const double cpu_before = cpu_seconds();
  const auto begin = Clock::now();
  std::thread metering;
  if (world_.rank() == 0)
    metering = std::thread([&] {
      load.measured = measure_steady(*meter_, window_ns_);
      is_over = true;
    });
  try {
    do {
      work();
      ++load.runs;
    } while (from_leader(is_over ? 1 : 0) == 0);
  } catch (...) {
    if (metering.joinable()) metering.join();
    throw;
  }
  load.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (metering.joinable()) metering.join();
  load.cpu_seconds = cpu_seconds() - cpu_before;
  if (meter_ != nullptr) load.power = meter_->take_samples();
  return load;
}

std::optional<double> LoadMeter::joules(const MeteredLoad& load) {
  const double watts = whole_power_of(load.measured).watts;
  return watts > 0 ? std::optional(watts * seconds_of_run(load)) : std::nullopt;
}

std::optional<Figure> LoadMeter::joules(const std::vector<MeteredLoad>& loads) {
  std::vector<double> known;
  double bound = 0;
  for (const MeteredLoad& load : loads) {
    const auto one = joules(load);
    if (!one) return std::nullopt;
    known.push_back(*one);
    bound = std::max(bound, whole_power_of(load.measured).error_watts * seconds_of_run(load));
  }
  return figure_of(known, bound);
}

std::string LoadMeter::reason(const MeteredLoad& load) {
  std::string text;
  for (const Kind kind : kinds)
    text += (text.empty() ? "" : "; ") + std::string(name(kind)) + ": " + reason_of(load.measured, kind);
  return text;
}

Json LoadMeter::record(const MeteredWindows& windows, double units) const {
  std::vector<double> seconds, cores, all_joules;
  Json each = Json::array();
  for (const MeteredLoad& load : windows.loads) {
    seconds.push_back(seconds_of_run(load) / units);
    cores.push_back(load.cpu_seconds / load.seconds);
    each.push_back({seconds.back(), whole_power_of(load.measured).watts});
    if (const auto known = joules(load)) all_joules.push_back(*known);
  }
  const auto total = joules(windows.loads);
  Json record = {{"window_seconds", static_cast<double>(window_ns_) / 1e9},
                 {"seconds", median(seconds)},
                 {"error", total ? Json(total->error / total->value) : Json(nullptr)},
                 {"spread", total ? Json(spread_of(all_joules)) : Json(nullptr)},
                 {"windows", each},
                 {"cpu_cores", median(cores)},
                 {"wait_policy", name(world_.config().wait_policy)},
                 {"wait_period_us", world_.config().wait_period_us},
                 {"components", Json::object()},
                 {"gpus", Json::array()}};
  for (const Kind kind : kinds) record["components"][name(kind)] = component(kind, windows, units);
  for (const std::string& gpu : gpus_) record["gpus"].push_back(gpu_state(gpu));
  const MeteredLoad& last = windows.loads.back();
  if (!last.power.empty()) record["power"] = power_over_time(last, meter_->components());
  return record;
}

}  // namespace beeline::bench
