// SPDX-License-Identifier: Apache-2.0
#include "environment/load_meter.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
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

Measured measure_for(energy::Meter& meter, std::int64_t window_ns) {
  const auto window = meter.start();
  std::this_thread::sleep_for(std::chrono::nanoseconds(window_ns));
  return meter.stop(window, ShortWindow::widen);
}

/// Of one kind of component.
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

/// The load whose runs took the median time.
const MeteredLoad& median_of(const std::vector<MeteredLoad>& loads) {
  std::vector<const MeteredLoad*> sorted;
  for (const MeteredLoad& one : loads) sorted.push_back(&one);
  const auto seconds_of_run = [](const MeteredLoad* one) { return one->seconds / static_cast<double>(one->runs); };
  std::sort(sorted.begin(), sorted.end(), [&](auto* a, auto* b) { return seconds_of_run(a) < seconds_of_run(b); });
  return *sorted[sorted.size() / 2];
}

/// By component, where the device or its counter shows power.
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
  constexpr std::int64_t longest_rest_ns = 5'000'000'000;  // of a run that has begun, and of what the meter does
  const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) / 1e9; };
  require(
      config.size == 1 || window_ns + longest_rest_ns < config.deadline_ns, Status::invalid_argument,
      fmt::format("--energy, --window: a window of {} s, for which ranks wait: BEELINE_DEADLINE_S={} has to be over {}",
                  seconds(window_ns), seconds(config.deadline_ns), seconds(window_ns + longest_rest_ns)));
}

LoadMeter::LoadMeter(World& world, std::int64_t window_ns)
    : world_(world), window_ns_(window_ns), gpus_(gpus_of(world)) {
  check_window(window_ns, world.config());
  if (world.rank() == 0) {
    meter_ = std::make_unique<energy::Meter>(sources_of(world, gpus_));
    idle_ = measure_for(*meter_, window_ns);
    if (const auto power = power_of(idle_, Kind::gpu)) cold_watts_ = power->watts;
  }
  static_cast<void>(from_leader(0));  // the others sleep in it
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

MeteredLoad LoadMeter::run(const std::function<void()>& work) {
  if (meter_ != nullptr) static_cast<void>(meter_->take_samples());
  work();
  MeteredLoad load;
  load.idle = idle_;
  std::atomic<bool> is_over = false;
  const double cpu_before = cpu_seconds();
  const auto begin = Clock::now();
  std::thread metering;
  if (world_.rank() == 0)
    metering = std::thread([&] {
      load.measured = measure_for(*meter_, window_ns_);
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

void LoadMeter::cool_down() {
  constexpr std::int64_t look_ns = 500'000'000;
  constexpr int most_looks = 4;
  for (int look = 0; meter_ != nullptr && look < most_looks; ++look) {
    idle_ = measure_for(*meter_, look_ns);
    const auto now = power_of(idle_, Kind::gpu);
    if (!now || now->watts < 1.1 * cold_watts_) break;
  }
  static_cast<void>(from_leader(0));
}

std::optional<double> LoadMeter::joules(const MeteredLoad& load) {
  std::optional<double> watts;
  for (const Kind kind : kinds)
    if (const auto part = power_of(load.measured, kind)) watts = watts.value_or(0) + part->watts;
  if (!watts) return std::nullopt;
  return *watts * load.seconds / static_cast<double>(load.runs);
}

std::string LoadMeter::reason(const MeteredLoad& load) {
  std::string text;
  for (const Kind kind : kinds)
    text += (text.empty() ? "" : "; ") + std::string(name(kind)) + ": " + reason_of(load.measured, kind);
  return text;
}

Json LoadMeter::component(Kind kind, const std::vector<MeteredLoad>& loads, double units) const {
  const MeteredLoad& load = median_of(loads);
  const auto power = power_of(load.measured, kind), idle = power_of(load.idle, kind);
  const double seconds = load.seconds / static_cast<double>(load.runs) / units;
  Json part = Json::object();
  for (const char* name : {"watts", "idle_watts", "error_watts", "joules", "joules_above_idle", "reason"})
    part[name] = nullptr;
  if (idle) part["idle_watts"] = idle->watts;
  if (!power) {
    part["reason"] = reason_of(load.measured, kind);
    return part;
  }
  part["watts"] = power->watts;
  part["error_watts"] = power->error_watts;
  part["joules"] = power->watts * seconds;
  const double above = idle ? power->watts - idle->watts : 0;
  if (idle && above > power->error_watts + idle->error_watts) part["joules_above_idle"] = above * seconds;
  return part;
}

Json LoadMeter::record(const std::vector<MeteredLoad>& loads, double units) const {
  const MeteredLoad& load = median_of(loads);
  Json record = {{"window_seconds", static_cast<double>(window_ns_) / 1e9},
                 {"seconds", load.seconds / static_cast<double>(load.runs) / units},
                 {"cpu_cores", load.cpu_seconds / load.seconds},
                 {"wait_policy", name(world_.config().wait_policy)},
                 {"wait_period_us", world_.config().wait_period_us},
                 {"components", Json::object()},
                 {"gpus", Json::array()}};
  for (const Kind kind : kinds) record["components"][name(kind)] = component(kind, loads, units);
  for (const std::string& gpu : gpus_) record["gpus"].push_back(gpu_state(gpu));
  if (!load.power.empty()) record["power"] = power_over_time(load, meter_->components());
  return record;
}

}  // namespace beeline::bench
