// SPDX-License-Identifier: Apache-2.0
/// @file
/// Sources of a machine, on NVML and powercap folders that the tests make; sampling; the kernel's counters of CPUs.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "beeline/energy/gpu_state.hpp"
#include "beeline/energy/meter.hpp"
#include "energy/cpu_use.hpp"
#include "tests/support/errors.hpp"

namespace beeline::tests {

namespace {

using namespace energy;
namespace fs = std::filesystem;

constexpr std::int64_t one_ms = 1'000'000;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

class EnergySources : public ::testing::Test {
 protected:
  EnergySources() {
    std::string pattern = (fs::temp_directory_path() / "beeline-energy-").string() + std::string(6, 'X');
    root = ::mkdtemp(pattern.data());
    fs::permissions(root, fs::perms(0755));
  }
  ~EnergySources() override { fs::remove_all(root); }

  void add_zone(const std::string& zone, const std::string& what, const std::string& microjoules) const {
    write(root / zone / "name", what + "\n");
    write(root / zone / "energy_uj", microjoules + "\n");
    write(root / zone / "max_energy_range_uj", "262143328850\n");
  }
  fs::path root;
};

/// Waits until the meter has given `count` samples.
std::vector<Sample> samples_of(Meter& meter, std::size_t count) {
  std::vector<Sample> all;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (all.size() < count && std::chrono::steady_clock::now() < end) {
    for (Sample& sample : meter.take_samples()) all.push_back(std::move(sample));
    std::this_thread::yield();
  }
  EXPECT_GE(all.size(), count);
  return all;
}

}  // namespace

TEST_F(EnergySources, RaplZonesArePackagesAndDram) {
  add_zone("intel-rapl:0", "package-0", "5000000");
  add_zone("intel-rapl:0:0", "core", "1");
  add_zone("intel-rapl:0:1", "dram", "2500000");
  add_zone("intel-rapl:1", "package-1", "7000000");
  add_zone("intel-rapl-mmio:0", "package-0", "5000000");
  write(root / "dtpm" / "name", "package-0\n");
  const Sources sources = rapl_sources(root);
  ASSERT_EQ(sources.size(), 3);
  const char* const names[] = {"cpu0", "dram0", "cpu1"};
  const double joules[] = {5, 2.5, 7};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(sources[i]->component().name, names[i]);
    EXPECT_NEAR(sources[i]->component().range_joules.value(), 262143.32885, 1e-6);
    EXPECT_EQ(sources[i]->read(0).joules, joules[i]);
  }
  add_zone("intel-rapl:0", "package-0", "6000000");
  EXPECT_EQ(sources[0]->read(1).joules, 6);
}

TEST_F(EnergySources, WithoutRaplThereAreReasons) {
  for (const std::string& folder : {root.string(), std::string("/no/such/folder")}) {
    const Sources sources = rapl_sources(folder);
    ASSERT_EQ(sources.size(), 2);
    EXPECT_EQ(sources[0]->component().kind, Kind::cpu);
    EXPECT_EQ(sources[0]->read(0).reason, folder + " shows no RAPL zone of the cpu");
    EXPECT_EQ(sources[1]->read(0).reason, folder + " shows no RAPL zone of the dram");
  }
}

TEST_F(EnergySources, MissingPermissionIsExplained) {
  add_zone("intel-rapl:0", "package-0", "5000000");
  fs::permissions(root / "intel-rapl:0" / "energy_uj", fs::perms::none);
  const Sources sources = rapl_sources(root);
  const uid_t me = geteuid();
  constexpr uid_t nobody = 65534;  // root may read everything
  ASSERT_TRUE(me != 0 || seteuid(nobody) == 0);
  const Reading reading = sources.at(0)->read(0);
  ASSERT_TRUE(me != 0 || seteuid(me) == 0);
  EXPECT_EQ(reading.joules, std::nullopt);
  EXPECT_NE(reading.reason.find("energy_uj: Permission denied; only root may read it"), std::string::npos)
      << reading.reason;
}

TEST_F(EnergySources, ZonesThatAreOddHaveAReason) {
  const fs::path zone = root / "intel-rapl:\xff";
  const auto reason = [this] {
    const Reading reading = rapl_sources(root).at(0)->read(0);
    EXPECT_EQ(reading.joules, std::nullopt);
    return reading.reason;
  };
  const std::string place = (root / "intel-rapl:\\xff").string() + '/';
  for (const auto& [text, shown] : {std::pair("many", "many"), {"12abc", "12abc"}, {"", ""}, {"\xc3(", "\\xc3("}}) {
    add_zone("intel-rapl:\xff", "package-0\xff", text);
    EXPECT_EQ(reason(), place + "energy_uj: \"" + shown + "\" is no number");
  }
  EXPECT_EQ(rapl_sources(root).at(0)->component().device, "intel-rapl:\\xff");
  fs::remove(zone / "energy_uj");
  EXPECT_EQ(reason(), place + "energy_uj: No such file or directory");
  add_zone("intel-rapl:\xff", "package-0", "1");
  write(zone / "max_energy_range_uj", "0\n");
  EXPECT_EQ(reason(), place + "max_energy_range_uj: a range of 0");
  fs::remove(zone / "max_energy_range_uj");
  EXPECT_EQ(reason(), place + "max_energy_range_uj: No such file or directory");
}

TEST_F(EnergySources, NvmlGpusAreMeteredAndMayBeLost) {
  const fs::path lost = root / "lost";
  setenv("FAKE_NVML_LOST", lost.c_str(), 1);
  Meter meter(gpu_sources({}, BEELINE_FAKE_NVML));
  const std::vector<Component> components = meter.components();
  ASSERT_EQ(components.size(), 2);
  EXPECT_EQ(components[1].name, "gpu1");
  EXPECT_EQ(components[1].device, "GPU-fake-1");
  const auto window = meter.start();
  const Measured measured = meter.stop(window, ShortWindow::widen);  // one tick long: the error of its ends is large
  EXPECT_LE(measured.components.at(0).seconds, 10);
  meter.sample_every(one_ms);
  for (const Sample& sample : samples_of(meter, 20)) EXPECT_EQ(sample.watts, 300);
  write(lost, "");
  const auto later = meter.start();
  EXPECT_EQ(meter.stop(later).components.at(1).reason, "gpu1: total-energy counter: GPU is lost (NVML 15)");
}

TEST_F(EnergySources, NvmlFieldsComeFirst) {
  const Sources by_functions = gpu_sources({}, BEELINE_FAKE_NVML);
  EXPECT_EQ(by_functions.at(0)->watts(), 300);
  const double before = by_functions.at(0)->read(0).joules.value();
  setenv("FAKE_NVML_FIELDS", "1", 1);
  const Sources by_fields = gpu_sources({}, BEELINE_FAKE_NVML);
  EXPECT_EQ(by_fields.at(0)->watts(), 301);
  const Reading reading = by_fields.at(0)->read(0);
  unsetenv("FAKE_NVML_FIELDS");
  EXPECT_EQ(reading.watts, 301);
  EXPECT_GE(reading.joules.value(), before);
  EXPECT_LT(reading.joules.value(), before + 300 * 60);
}

TEST_F(EnergySources, CountersThatReadSlowlyAreReadSeldom) {
  struct Slow : Source {
    Slow() : Source({.kind = Kind::gpu, .name = "gpu0", .device = {}, .range_joules = {}}) {}
    Reading read(std::int64_t) override {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return {.joules = 1, .watts = 7, .reason = {}};
    }
    std::optional<double> watts() override { return 7; }
  };
  Sources sources;
  sources.push_back(std::make_unique<Slow>());
  Meter meter(std::move(sources));
  meter.sample_every(one_ms);
  const std::vector<Sample> samples = samples_of(meter, 60);
  for (const Sample& sample : samples) EXPECT_EQ(sample.watts, 7);
  EXPECT_LE(std::ranges::count_if(samples, [](const Sample& one) { return one.joules.has_value(); }), 5);
}

TEST_F(EnergySources, WithoutNvmlThereIsAReason) {
  const Sources sources = gpu_sources({}, "libno-such-nvml.so");
  ASSERT_EQ(sources.size(), 1);
  EXPECT_EQ(sources[0]->component().name, "gpu");
  EXPECT_EQ(sources[0]->read(0).reason.find("NVML is missing: libno-such-nvml.so"), 0);
  const Sources unknown = gpu_sources({"GPU-unknown"}, BEELINE_FAKE_NVML);
  EXPECT_EQ(unknown.at(0)->read(0).reason, "GPU-unknown: Not Found (NVML 6)");
  EXPECT_FALSE(gpu_state("GPU-unknown"));
}

TEST_F(EnergySources, TwoMetersOfOneProcess) {
  auto one = std::make_unique<Meter>(gpu_sources({}, BEELINE_FAKE_NVML));
  Meter other(gpu_sources({}, BEELINE_FAKE_NVML));
  one->sample_every(one_ms);
  other.sample_every(one_ms);
  samples_of(*one, 4);
  beeline_test::check_error(Status::invalid_argument, {"samples already"}, [&] { other.sample_every(one_ms); });
  const auto window = other.start();
  one.reset();  // NVML stays open for the other
  const ComponentEnergy energy = other.stop(window, ShortWindow::widen).components.at(0);
  EXPECT_GT(energy.seconds, 0);
  for (const Sample& sample : samples_of(other, 50)) {
    EXPECT_EQ(sample.reason, "");
    EXPECT_EQ(sample.watts, 300);
  }
}

TEST_F(EnergySources, SamplesShowPowerOverTime) {
  const auto begin = std::chrono::steady_clock::now().time_since_epoch();
  Sources sources;
  sources.push_back(
      synthetic_source({.kind = Kind::cpu, .name = "cpu0", .device = {}, .range_joules = {}}, [=](std::int64_t now) {
        return Reading{.joules = static_cast<double>(now - begin.count()) * 40e-9, .watts = {}, .reason = {}};
      }));
  Meter meter(std::move(sources));
  meter.sample_every(2 * one_ms);
  const std::vector<Sample> samples = samples_of(meter, 10);
  for (std::size_t i = 1; i < samples.size(); ++i) {
    EXPECT_GT(samples[i].time_ns, samples[i - 1].time_ns);
    EXPECT_GT(samples[i].joules, samples[i - 1].joules);
    EXPECT_NEAR(samples[i].watts.value(), 40, 1e-3);
  }
  EXPECT_EQ(meter.dropped_samples(), 0);
  beeline_test::check_error(Status::invalid_argument, {"at least 1 ms"}, [&] { meter.sample_every(1); });
}

TEST_F(EnergySources, CpuTimeAndSleepStates) {
  const CpuUse none = cpu_use(root / "proc", root / "cpus");
  EXPECT_EQ(none.machine_seconds, std::nullopt);
  EXPECT_NE(none.reason.find("does not show the CPUs' time"), std::string::npos);
  EXPECT_NE(none.reason.find("no sleep states"), std::string::npos);

  const auto show = [&](int busy, int slept) {
    write(root / "proc" / "stat", "cpu  " + std::to_string(busy) + " 0 100 7 8 0 0 0 0 0\ncpu0 ...\n");
    for (const char* cpu : {"cpu0", "cpu1"}) {
      write(root / "cpus" / cpu / "cpuidle" / "state1" / "name", "C6\n");
      write(root / "cpus" / cpu / "cpuidle" / "state1" / "time", std::to_string(slept) + "\n");
    }
    return cpu_use(root / "proc", root / "cpus");
  };
  const CpuUse before = show(1000, 5'000'000), after = show(1200, 6'500'000), used = difference(after, before);
  EXPECT_NEAR(used.machine_seconds.value(), 200.0 / static_cast<double>(sysconf(_SC_CLK_TCK)), 1e-9);
  EXPECT_NEAR(used.sleep_seconds.at("C6"), 3, 1e-9);
  EXPECT_EQ(used.reason, "");
  EXPECT_GE(used.process_seconds, 0);
}

}  // namespace beeline::tests
