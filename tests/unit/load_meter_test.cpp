// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the records of metered loads say, of loads that the tests make.
#include "environment/load_meter.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

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

/// Of a load of 40 W whose runs of two units take half a second, beside an idle power.
ordered_json record_beside(double idle_watts) {
  bench::MeteredLoad load;
  load.idle = of_cpu(idle_watts, 0.01), load.measured = of_cpu(40, 0.01);
  load.runs = 4, load.seconds = 2, load.cpu_seconds = 3;
  ordered_json record;
  Config config = test_config();
  config.device = "cpu", config.wait_policy = WaitPolicy::sleep, config.wait_period_us = 500;
  expect_all_passed(run_ranks(
      WorldKind::threads, 1,
      [&](World& world) {
        constexpr std::int64_t window_ns = 1'000'000;
        record = bench::LoadMeter(world, window_ns).record({load}, 2);
      },
      config));
  return record;
}

/// Whose operations take a millisecond each; what warms up, in every batch.
bench::Measurement of_a_millisecond() {
  bench::Measurement measurement{.operation = "test", .method = "device/test"};
  measurement.time = [](bench::Rounds rounds) {
    const std::uint32_t operations = (rounds.warm_up + rounds.iterations) * rounds.batches;
    std::this_thread::sleep_until(std::chrono::steady_clock::now() + std::chrono::milliseconds(operations));
    return std::vector(rounds.batches, rounds.iterations * 1e6);
  };
  return measurement;
}

}  // namespace

TEST(EnergyBench, EveryOperationOfTheLoadCounts) {
  Config config = test_config();
  config.device = "cpu", config.powercap = "/no/such/folder";
  testing::internal::CaptureStdout();
  expect_all_passed(run_ranks(
      WorldKind::threads, 1,
      [](World& world) {
        bench::Options options;
        options.energy_ms = 100;
        bench::Bench ranks(world, options);
        bench::Outcome outcome;
        outcome.iterations = 2, outcome.samples = {1000};
        bench::EnergyBench(ranks).run({of_a_millisecond()}, {outcome});
      },
      config));
  const ordered_json record = ordered_json::parse(testing::internal::GetCapturedStdout());
  EXPECT_TRUE(record["median"].is_null());
  EXPECT_GE(record["energy"]["seconds"], 1.0e-3);
  EXPECT_LT(record["energy"]["seconds"], 1.3e-3);
}

TEST(LoadMeter, JoulesAreForAUnit) {
  const ordered_json record = record_beside(30), cpu = record["components"]["cpu"];
  EXPECT_DOUBLE_EQ(record["seconds"], 0.25);
  EXPECT_DOUBLE_EQ(record["cpu_cores"], 1.5);
  EXPECT_DOUBLE_EQ(cpu["joules"], 10);
  EXPECT_DOUBLE_EQ(cpu["error_watts"], 0.4);
  EXPECT_DOUBLE_EQ(cpu["joules_above_idle"], 2.5);
  EXPECT_EQ(record["components"]["gpu"]["reason"], "no rank has one");
  EXPECT_EQ(record["wait_policy"], "sleep");
  EXPECT_EQ(record["wait_period_us"], 500);
  EXPECT_FALSE(record.contains("power"));
}

TEST(LoadMeter, NothingIsAboveIdleWithinTheErrorOfBoth) {
  for (const double idle : {39.3, 40.0, 45.0})
    EXPECT_TRUE(record_beside(idle)["components"]["cpu"]["joules_above_idle"].is_null()) << idle;
  EXPECT_DOUBLE_EQ(record_beside(39)["components"]["cpu"]["joules_above_idle"], 0.25);
}

}  // namespace beeline_test
