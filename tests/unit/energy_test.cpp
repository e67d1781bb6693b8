// SPDX-License-Identifier: Apache-2.0
/// @file
/// The meter, with sources that stand for counters, and a clock that the tests set.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "beeline/energy/meter.hpp"
#include "tests/support/errors.hpp"

namespace beeline::tests {

namespace {

using namespace energy;

constexpr std::int64_t ms = 1'000'000, second = 1'000 * ms;

/// A machine whose clock advances when a meter sleeps.
struct Machine {
  std::int64_t now_ns = 17 * second;
  Clock clock() {
    return {.now_ns = [this] { return now_ns; }, .sleep_ns = [this](std::int64_t time) { now_ns += time; }};
  }
};

Component gpu(const std::string& name = "gpu0") {
  return {.kind = Kind::gpu,
          .name = name,
          .device = "GPU-test",
          .tick_ns = 100 * ms,
          .range_joules = {},
          .most_watts = 2000};
}

Component cpu(std::optional<double> range = {}) {
  return {.kind = Kind::cpu,
          .name = "cpu0",
          .device = "intel-rapl:0",
          .tick_ns = ms,
          .range_joules = range,
          .most_watts = 2000};
}

Reading joules(double value) { return {.joules = value, .watts = {}, .reason = {}}; }
Reading broken(const std::string& reason) { return {.joules = {}, .watts = {}, .reason = reason}; }

using Curve = std::function<double(std::int64_t)>;

/// A counter of `joules_at` that changes only at ticks, `phase_ns` after those of the clock.
std::unique_ptr<Source> ticking(Curve joules_at, std::int64_t phase_ns = 0, const std::string& name = "gpu0") {
  const Component component = gpu(name);
  return synthetic_source(component, [=](std::int64_t now) {
    return joules(joules_at((now - phase_ns) / component.tick_ns * component.tick_ns + phase_ns));
  });
}

Curve constant(double watts) {
  return [=](std::int64_t now) { return watts * static_cast<double>(now) / 1e9; };
}

Sources only(std::unique_ptr<Source> one) {
  Sources all;
  all.push_back(std::move(one));
  return all;
}

/// Measures one source in a window of `length_ns`.
ComponentEnergy measure(std::unique_ptr<Source> source, std::int64_t length_ns,
                        ShortWindow policy = ShortWindow::refuse) {
  Machine machine;
  Meter meter(only(std::move(source)), machine.clock());
  const auto window = meter.start();
  machine.now_ns += length_ns;
  return meter.stop(window, policy).components.at(0);
}

void expect_missing(const ComponentEnergy& energy, const std::string& words) {
  EXPECT_EQ(energy.joules, std::nullopt);
  EXPECT_EQ(energy.watts, std::nullopt);
  EXPECT_NE(energy.reason.find(words), std::string::npos) << energy.reason;
}

}  // namespace

TEST(Energy, ConstantLoadOf20s) {
  const ComponentEnergy energy = measure(ticking(constant(300)), 20 * second);
  ASSERT_TRUE(energy.joules) << energy.reason;
  EXPECT_NEAR(*energy.joules, 6000, 0.01 * 6000);
  EXPECT_NEAR(*energy.watts, 300, 3);
  EXPECT_LE(*energy.error, 0.02);
  EXPECT_EQ(energy.notice, "");
}

TEST(Energy, ErrorIsABoundWhereverTheWindowLiesBetweenTicks) {
  for (std::int64_t phase = 0; phase < 100 * ms; phase += 7 * ms)
    for (std::int64_t length = 8 * second; length < 8 * second + 100 * ms; length += 13 * ms) {
      Machine machine;
      std::int64_t begin = 0, end = 0;
      const auto load = [&](std::int64_t now) {  // 100 W, and 700 W in the window
        const std::int64_t worked = begin == 0 ? 0 : std::max<std::int64_t>(std::min(now, end) - begin, 0);
        return constant(100)(now) + constant(600)(worked);
      };
      Meter meter(only(ticking(load, phase)), machine.clock());
      const auto window = meter.start();
      begin = machine.now_ns;
      machine.now_ns = end = begin + length;
      const ComponentEnergy energy = meter.stop(window).components.at(0);
      ASSERT_TRUE(energy.joules) << energy.reason;
      const double truth = 700 * static_cast<double>(length) / 1e9;
      ASSERT_LE(std::abs(*energy.joules - truth), *energy.error * truth) << phase << " " << length;
    }
}

TEST(Energy, ShortWindowsAreRefusedOrWidened) {
  const ComponentEnergy refused = measure(ticking(constant(300)), 730 * ms);
  expect_missing(refused, "s would do");
  EXPECT_GT(*refused.error, 0.02);
  const ComponentEnergy widened = measure(ticking(constant(300)), 730 * ms, ShortWindow::widen);
  ASSERT_TRUE(widened.joules) << widened.reason;
  EXPECT_NEAR(*widened.joules / widened.seconds, 300, 3);
  EXPECT_GE(widened.seconds, 0.73);
  EXPECT_NE(widened.notice.find("widened by 0.0"), std::string::npos) << widened.notice;
  EXPECT_NEAR(measure(ticking(constant(300)), 0, ShortWindow::widen).joules.value(), 30, 1);  // one tick
}

TEST(Energy, TheLengthThatWouldDoDoes) {
  const auto fine = [] { return synthetic_source(cpu(), [](std::int64_t now) { return joules(constant(50)(now)); }); };
  const auto check = [](const ComponentEnergy& refused, const auto& measure_for) {
    double enough_s = 0;
    ASSERT_EQ(std::sscanf(refused.reason.c_str(), "%*[^:]: %lf s would do", &enough_s), 1) << refused.reason;
    const ComponentEnergy longer = measure_for(std::llround(enough_s * 1e9));
    EXPECT_TRUE(longer.joules) << refused.reason << "; then " << longer.reason;
  };
  for (std::int64_t length = 3 * ms; length < 90 * ms; length += 3 * ms)
    check(measure(fine(), length), [&](std::int64_t enough) { return measure(fine(), enough); });
  for (std::int64_t length = 110 * ms; length < 2 * second; length += 30 * ms)
    check(measure(ticking(constant(300)), length),
          [&](std::int64_t enough) { return measure(ticking(constant(300)), enough); });
}

TEST(Energy, FineCountersNeedNoTicks) {
  const ComponentEnergy energy =
      measure(synthetic_source(cpu(), [](std::int64_t now) { return joules(constant(50)(now)); }), second / 2);
  ASSERT_TRUE(energy.joules) << energy.reason;
  EXPECT_NEAR(*energy.joules, 25, 0.1);
  expect_missing(measure(synthetic_source(cpu(), [](std::int64_t now) { return joules(constant(50)(now)); }), 20 * ms),
                 "error of");
}

TEST(Energy, CountersWrap) {
  const auto wrapping = [](std::int64_t now) { return joules(std::fmod(constant(500)(now), 10'000)); };
  const ComponentEnergy energy = measure(synthetic_source(cpu(10'000), wrapping), 4 * second);  // from 8500 to 500
  ASSERT_TRUE(energy.joules) << energy.reason;
  EXPECT_NEAR(*energy.joules, 2000, 10);
  expect_missing(measure(synthetic_source(cpu(10'000), wrapping), 30 * second), "more than once");
}

TEST(Energy, CountersThatGoBack) {
  const auto reset = [](std::int64_t now) { return joules(now < 20 * second ? 5000 + now / 1e9 : now / 1e9); };
  expect_missing(measure(ticking([=](std::int64_t now) { return *reset(now).joules; }), 10 * second), "went back from");
  // Wrapping is no explanation if the machine cannot have used so much energy.
  expect_missing(measure(synthetic_source(cpu(1e6), reset), 10 * second), "went back from");
}

TEST(Energy, CountersThatJump) {
  const auto jump = [](std::int64_t now) { return constant(100)(now) + (now < 20 * second ? 0 : 1e6); };
  Machine machine;
  Meter meter(only(ticking(jump)), machine.clock());
  const auto window = meter.start();
  machine.now_ns += 10 * second;
  expect_missing(meter.stop(window).components.at(0), "jumped by");
  // Samples before the jump are discarded.
  const auto next = meter.start();
  machine.now_ns += 10 * second;
  EXPECT_NEAR(meter.stop(next).components.at(0).joules.value(), 1000, 20);
}

TEST(Energy, AThreadThatLosesItsCoreBeforeAReadingFindsNoJump) {
  Machine machine;
  bool is_late = false;
  const auto read = [&](std::int64_t) {
    if (std::exchange(is_late, false)) machine.now_ns += 100 * ms;
    return joules(constant(300)(machine.now_ns));
  };
  Meter meter(only(synthetic_source(cpu(), read)), machine.clock());
  const auto window = meter.start();
  machine.now_ns += 10 * second;
  static_cast<void>(meter.start());
  is_late = true;  // for a reading that follows another at once
  static_cast<void>(meter.start());
  machine.now_ns += 10 * second;
  const ComponentEnergy energy = meter.stop(window).components.at(0);
  ASSERT_TRUE(energy.joules) << energy.reason;
  EXPECT_NEAR(*energy.joules, 300 * 20.1, 1);
}

TEST(Energy, CountersThatStandStill) {
  expect_missing(measure(ticking([](std::int64_t) { return 42; }), 10 * second), "stands still");
  const auto stops = [](std::int64_t now) { return constant(100)(std::min(now, 20 * second)); };
  expect_missing(measure(ticking(stops), 10 * second), "stands still");
  expect_missing(measure(synthetic_source(cpu(), [](std::int64_t) { return joules(7); }), 10 * second), "stands still");
}

TEST(Energy, ALostGpuLeavesTheOthers) {
  Machine machine;
  bool is_lost = false;
  Sources sources;
  sources.push_back(synthetic_source(gpu(), [&](std::int64_t now) {
    return is_lost ? broken("GPU is lost") : joules(constant(300)(now / (100 * ms) * 100 * ms));
  }));
  sources.push_back(ticking(constant(200), 40 * ms, "gpu1"));
  Meter meter(std::move(sources), machine.clock());
  const auto window = meter.start();
  machine.now_ns += 5 * second;
  is_lost = true;
  machine.now_ns += 5 * second;
  const Measured measured = meter.stop(window);
  expect_missing(measured.components.at(0), "GPU is lost");
  EXPECT_NEAR(measured.components.at(1).joules.value(), 2000, 40);
  EXPECT_EQ(measured.joules(Kind::gpu), std::nullopt);  // a sum that lacks a part would look complete
  EXPECT_EQ(measured.joules(), std::nullopt);
}

TEST(Energy, WindowsMayOverlapAndSumsAreByKind) {
  Machine machine;
  Sources sources;
  sources.push_back(ticking(constant(300)));
  sources.push_back(ticking(constant(200), 50 * ms, "gpu1"));
  sources.push_back(synthetic_source(cpu(), [](std::int64_t now) { return joules(constant(50)(now)); }));
  Meter meter(std::move(sources), machine.clock());
  const auto outer = meter.start();
  machine.now_ns += 20 * second;
  const auto inner = meter.start();
  machine.now_ns += 20 * second;
  const Measured part = meter.stop(inner);
  for (const ComponentEnergy& one : part.components) EXPECT_EQ(one.reason, "");
  EXPECT_NEAR(part.joules(Kind::gpu).value(), 10000, 200);
  const Measured whole = meter.stop(outer);
  EXPECT_NEAR(whole.joules(Kind::gpu).value() / whole.seconds, 500, 10);
  EXPECT_NEAR(whole.joules(Kind::cpu).value() / whole.seconds, 50, 1);
  EXPECT_NEAR(whole.joules().value(), *whole.joules(Kind::gpu) + *whole.joules(Kind::cpu), 1e-6);
  EXPECT_EQ(whole.joules(Kind::dram), std::nullopt);
}

TEST(Energy, AWindowBelongsToItsMeter) {
  Machine machine;
  Meter one(only(ticking(constant(1))), machine.clock()), none({}, machine.clock());
  const auto window = one.start();
  beeline_test::check_error(Status::invalid_argument, {"not started by this meter"},
                            [&] { static_cast<void>(none.stop(window)); });
}

TEST(Energy, ReplayShowsARecordAgain) {
  std::vector<std::pair<std::int64_t, Reading>> record;
  for (std::int64_t time = 0; time <= 30 * second; time += 50 * ms)
    record.emplace_back(time, joules(constant(250)(time / (100 * ms) * 100 * ms)));
  Machine machine{.now_ns = 0};
  Meter meter(only(replay_source(gpu(), record)), machine.clock());
  const auto window = meter.start();
  machine.now_ns += 20 * second;
  EXPECT_NEAR(meter.stop(window).components.at(0).joules.value(), 5000, 100);
}

TEST(Energy, BrokenRecordsAreRefused) {
  beeline_test::check_error(Status::invalid_argument, {"gpu0 has no readings"},
                            [] { static_cast<void>(replay_source(gpu(), {})); });
  beeline_test::check_error(Status::invalid_argument, {"times of gpu0 do not ascend"}, [] {
    static_cast<void>(replay_source(gpu(), {{2, joules(1)}, {1, joules(2)}}));
  });
}

}  // namespace beeline::tests
