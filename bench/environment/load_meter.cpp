// SPDX-License-Identifier: Apache-2.0
#include "environment/load_meter.hpp"

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

std::optional<double> watts_of(const Measured& measured, Kind kind) {
  std::optional<double> sum;
  for (const energy::ComponentEnergy& part : measured.components) {
    if (part.component.kind != kind) continue;
    if (!part.watts) return std::nullopt;
    sum = sum.value_or(0) + *part.watts;
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

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

LoadMeter::LoadMeter(World& world, std::int64_t window_ns)
    : world_(world), window_ns_(window_ns), gpus_(gpus_of(world)) {
  require(window_ns + 5'000'000'000 < world.config().deadline_ns, Status::invalid_argument,
          "energy: a window that is not 5 s shorter than BEELINE_DEADLINE_S");
  if (world.rank() == 0) {
    meter_ = std::make_unique<energy::Meter>(sources_of(world, gpus_));
    idle_ = measure_for(*meter_, window_ns);
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

MeteredLoad LoadMeter::run(const std::function<void()>& work) {
  work();
  MeteredLoad load;
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
  return load;
}

void LoadMeter::cool_down() {
  constexpr std::int64_t look_ns = 300'000'000;
  constexpr int most_looks = 5;
  const auto idle = watts_of(idle_, Kind::gpu);
  for (int look = 0; meter_ != nullptr && idle && look < most_looks; ++look) {
    const auto now = watts_of(measure_for(*meter_, look_ns), Kind::gpu);
    if (!now || *now < 1.1 * *idle) break;
  }
  static_cast<void>(from_leader(0));
}

std::optional<double> LoadMeter::joules(const MeteredLoad& load) {
  std::optional<double> watts;
  for (const Kind kind : kinds)
    if (const auto part = watts_of(load.measured, kind)) watts = watts.value_or(0) + *part;
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
  const auto watts = watts_of(load.measured, kind), idle = watts_of(idle_, kind);
  const double seconds = load.seconds / static_cast<double>(load.runs) / units;
  Json part = {{"watts", or_null(watts)}, {"idle_watts", or_null(idle)}};
  part["joules"] = watts ? Json(*watts * seconds) : Json(nullptr);
  part["joules_above_idle"] = watts && idle ? Json((*watts - *idle) * seconds) : Json(nullptr);
  part["reason"] = watts ? Json(nullptr) : Json(reason_of(load.measured, kind));
  return part;
}

Json LoadMeter::record(const std::vector<MeteredLoad>& loads, double units) const {
  const MeteredLoad& load = median_of(loads);
  Json record = {{"window_seconds", static_cast<double>(window_ns_) / 1e9},
                 {"seconds", load.seconds / static_cast<double>(load.runs) / units},
                 {"cpu_cores", load.cpu_seconds / load.seconds},
                 {"components", Json::object()},
                 {"gpus", Json::array()}};
  for (const Kind kind : kinds) record["components"][name(kind)] = component(kind, loads, units);
  for (const std::string& gpu : gpus_) record["gpus"].push_back(gpu_state(gpu));
  return record;
}

}  // namespace beeline::bench
