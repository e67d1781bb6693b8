// SPDX-License-Identifier: Apache-2.0
/// @file
/// The contents of records of metered loads, for loads that the tests make.
#include "environment/load_meter.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "environment/statistics.hpp"
#include "harness/energy.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test {

namespace {

using namespace beeline;
using nlohmann::ordered_json;

energy::Measured of_cpu(double watts, double error) {
  energy::ComponentEnergy cpu;
  cpu.component.kind = energy::Kind::cpu;
  cpu.watts = watts, cpu.error = error;
  return {.seconds = 1, .components = {cpu}, .cpu = {}};
}

/// The record of a load of 40 W, whose runs of two units take half a second, beside an idle power.
ordered_json record_beside(double idle_watts) {
  bench::MeteredWindows windows;
  windows.idle_before = windows.idle_after = of_cpu(idle_watts, 0.01);
  bench::MeteredLoad& load = windows.loads.emplace_back();
  load.measured = of_cpu(40, 0.01);
  load.runs = 4, load.seconds = 2, load.cpu_seconds = 3;
  ordered_json record;
  Config config = test_config();
  config.device = "cpu", config.wait_policy = WaitPolicy::sleep, config.wait_period_us = 500;
  expect_all_passed(run_ranks(
      WorldKind::threads, 1,
      [&](World& world) {
        constexpr std::int64_t window_ns = 1'000'000;
        record = bench::LoadMeter(world, window_ns).record(windows, 2);
      },
      config));
  return record;
}

/// Operations that take a millisecond each, warm-up included in every batch. A change of method is noted in `calls`.
bench::Measurement of_a_millisecond(const std::string& method, std::string& calls) {
  bench::Measurement measurement{.operation = "test", .method = method};
  measurement.time = [&calls, method](bench::Rounds rounds) {
    if (!calls.ends_with(method)) calls += method;
    const std::uint32_t operations = (rounds.warm_up + rounds.iterations) * rounds.batches;
    std::this_thread::sleep_until(std::chrono::steady_clock::now() + std::chrono::milliseconds(operations));
    return std::vector(rounds.batches, rounds.iterations * 1e6);
  };
  return measurement;
}

/// The records of the methods a and b, metered in windows of 100 ms on a machine without counters.
std::vector<ordered_json> records_within(std::uint64_t budget_s, std::string& calls) {
  Config config = test_config();
  config.device = "cpu", config.powercap = "/no/such/folder";
  testing::internal::CaptureStdout();
  expect_all_passed(run_ranks(
      WorldKind::threads, 1,
      [&](World& world) {
        bench::Options options;
        options.energy_ms = 100, options.energy_budget_s = budget_s;
        bench::Bench ranks(world, options);
        bench::Outcome outcome;
        outcome.iterations = 2, outcome.samples = {1000};
        bench::EnergyBench(ranks).run({of_a_millisecond("a", calls), of_a_millisecond("b", calls)}, {outcome, outcome},
                                      0, 1);
      },
      config));
  std::istringstream printed(testing::internal::GetCapturedStdout());
  std::vector<ordered_json> results;
  for (std::string line; std::getline(printed, line);)
    if (ordered_json record = ordered_json::parse(line); record["event"] == "result") results.push_back(record);
  return results;
}

/// A powercap folder with a CPU of 40 W, whose counter advances while the object lives.
class PowercapOf40Watts {
 public:
  PowercapOf40Watts() {
    std::string pattern = (std::filesystem::temp_directory_path() / "beeline-powercap-").string() + std::string(6, 'X');
    root_ = ::mkdtemp(pattern.data());
    const std::filesystem::path zone = root_ / "intel-rapl:0";
    std::filesystem::create_directories(zone);
    std::ofstream(zone / "name") << "package-0\n";
    std::ofstream(zone / "max_energy_range_uj") << "262143328850\n";
    file_ = ::open((zone / "energy_uj").c_str(), O_CREAT | O_RDWR, 0644);
    advance();
    thread_ = std::jthread([this](const std::stop_token& stop) {
      for (; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(1))) advance();
    });
  }
  ~PowercapOf40Watts() {
    thread_ = {};  // joins
    ::close(file_);
    std::filesystem::remove_all(root_);
  }
  PowercapOf40Watts(const PowercapOf40Watts&) = delete;
  PowercapOf40Watts& operator=(const PowercapOf40Watts&) = delete;

  [[nodiscard]] std::string path() const { return root_.string(); }
  /// Adds 5 kJ at once, more than any CPU can use.
  void jump() { jumped_uj_ += 5'000'000'000; }

 private:
  void advance() {
    const std::chrono::duration<double, std::micro> since = std::chrono::steady_clock::now() - begin_;
    std::string digits = std::to_string(static_cast<std::uint64_t>(40 * since.count()) + jumped_uj_);
    digits.insert(0, 12 - digits.size(), '0');  // of one length, so that no reader sees a partial number
    EXPECT_EQ(::pwrite(file_, digits.data(), digits.size(), 0), static_cast<ssize_t>(digits.size()));
  }

  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::filesystem::path root_;
  int file_ = -1;
  std::atomic<std::uint64_t> jumped_uj_ = 0;
  std::jthread thread_;
};

}  // namespace

TEST(EnergyBench, EveryOperationOfTheLoadCountsInRoundsOfAllMethods) {
  std::string calls;
  for (const ordered_json& record : records_within(0, calls)) {
    EXPECT_TRUE(record["median"].is_null());
    EXPECT_EQ(record["energy"]["windows"].size(), 3U);
    EXPECT_GE(record["energy"]["seconds"], 1.0e-3);
    EXPECT_LT(record["energy"]["seconds"], 1.3e-3);
  }
  EXPECT_EQ(calls, "ababa");  // a and b once to time them, then rounds that begin with b, a, b
}

TEST(EnergyBench, WhatDoesNotFitIntoTheBudgetIsNamed) {
  std::string calls;
  const std::vector<ordered_json> results = records_within(1, calls);
  ASSERT_EQ(results.size(), 2U);
  for (const ordered_json& record : results) EXPECT_TRUE(std::string(record["reason"]).starts_with("out of budget"));
  EXPECT_EQ(calls, "");
}

TEST(Statistics, AFigureIsTheMedianWithTheErrorOfTheMean) {
  const bench::Figure figure = bench::figure_of({1, 2, 6}, 0.5);
  EXPECT_DOUBLE_EQ(figure.value, 2);
  EXPECT_NEAR(figure.error, 4.303 * 2.6457513 / 1.7320508 + 0.5, 1e-6);  // Student's t, deviation, root of the count
  EXPECT_DOUBLE_EQ(bench::figure_of({3}, 0.5).error, 0.5);
}

TEST(LoadMeter, JoulesAreForAUnit) {
  const ordered_json record = record_beside(30), cpu = record["components"]["cpu"];
  EXPECT_DOUBLE_EQ(record["seconds"], 0.25);
  EXPECT_DOUBLE_EQ(record["cpu_cores"], 1.5);
  EXPECT_DOUBLE_EQ(cpu["joules"], 10);
  EXPECT_DOUBLE_EQ(cpu["error_watts"], 0.4);
  EXPECT_DOUBLE_EQ(cpu["joules_error"], 0.1);
  EXPECT_DOUBLE_EQ(cpu["joules_above_idle"], 2.5);
  EXPECT_DOUBLE_EQ(cpu["joules_above_idle_error"], 0.1 + 0.3 * 0.25);
  EXPECT_DOUBLE_EQ(record["error"], 0.01);
  EXPECT_EQ(record["components"]["gpu"]["reason"], "no rank has one");
  EXPECT_EQ(record["wait_policy"], "sleep");
  EXPECT_EQ(record["wait_period_us"], 500);
  EXPECT_FALSE(record.contains("power"));
}

TEST(LoadMeter, AWindowWithAFaultIsRepeated) {
  using std::chrono::milliseconds, std::chrono::steady_clock;
  PowercapOf40Watts powercap;
  Config config = test_config();
  config.device = "cpu", config.powercap = powercap.path();
  constexpr milliseconds window(200);  // as long again before it, in which the load settles
  const auto body = [&](World& world) {
    bench::LoadMeter meter(world, std::chrono::nanoseconds(window).count());
    const auto rest = [] { std::this_thread::sleep_for(milliseconds(5)); };
    std::optional<double> joules;
    for (int i = 0; i < 10 && !joules; ++i) joules = bench::LoadMeter::joules(meter.run(rest));
    ASSERT_TRUE(joules);  // a busy machine reads a counter too late ten times in a row only if it hardly runs
    bool is_over = false;
    const auto middle = steady_clock::now() + window + window / 2;
    const bench::MeteredLoad load = meter.run([&] {
      rest();
      if (!is_over && steady_clock::now() > middle) is_over = true, powercap.jump();
    });
    EXPECT_TRUE(is_over);
    EXPECT_EQ(bench::LoadMeter::reason(load).find("jumped by"), std::string::npos);
  };
  expect_all_passed(run_ranks(WorldKind::threads, 1, body, config));
}

TEST(LoadMeter, NothingIsAboveIdleWithinTheErrorOfBoth) {
  for (const double idle : {39.3, 40.0, 45.0})
    EXPECT_TRUE(record_beside(idle)["components"]["cpu"]["joules_above_idle"].is_null()) << idle;
  EXPECT_DOUBLE_EQ(record_beside(39)["components"]["cpu"]["joules_above_idle"], 0.25);
}

}  // namespace beeline_test
