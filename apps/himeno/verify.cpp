// SPDX-License-Identifier: Apache-2.0
#include "verify.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>

#include "common/sampling.hpp"
#include "serial.hpp"

namespace himeno {

namespace {

using Clock = std::chrono::steady_clock;

Expectation run_serial(const Size& size, Data data, int iterations, double seconds) {
  Serial serial(size, data, apps::hardware_threads());
  const auto start = Clock::now();
  int done = 0;
  while (done < iterations) {
    // Doubling needs few calls if iterations are cheap; the time limit is checked with the step to come, which could
    // overrun.
    const int more = std::min(std::max(done, 1), iterations - done);
    const double spent = std::chrono::duration<double>(Clock::now() - start).count();
    if (done > 0 && spent / done * (done + more) > seconds) break;
    serial.advance(more);
    done += more;
  }
  return {done, serial.field(), serial.gosa(), serial.gosa_float32()};
}

/// Collective. Returns rank 0's scalars on every rank once `work` has finished; the other ranks wait in short steps.
Expectation await_expectation(beeline::World& world, std::future<Expectation> work) {
  struct Message {
    std::uint32_t done;
    std::int32_t iterations;
    double gosa;
    float gosa_float32;
  } message{};
  Expectation mine;
  while (message.done == 0) {
    if (work.valid() && work.wait_for(std::chrono::seconds(1)) == std::future_status::ready) {
      mine = work.get();
      message = {1, mine.iterations, mine.gosa, mine.gosa_float32};
    }
    message = apps::from_all(world, message).front();
  }
  mine.iterations = message.iterations, mine.gosa = message.gosa, mine.gosa_float32 = message.gosa_float32;
  return mine;
}

}  // namespace

Expectation expect(beeline::World& world, const Size& size, Data data, int iterations, double seconds) {
  std::future<Expectation> work;
  if (world.rank() == 0) work = std::async(std::launch::async, run_serial, size, data, iterations, seconds);
  return await_expectation(world, std::move(work));
}

bool Comparison::good() const {
  constexpr double field_tolerance = 1e-5, gosa_tolerance = 1e-5;
  return max_error <= field_tolerance && gosa_error <= gosa_tolerance;  // false for NaN
}

Comparison compare(const Expectation& expected, const std::vector<float>& field, double gosa) {
  Comparison result;
  if (field.size() != expected.field.size()) return {INFINITY, INFINITY};
  result.max_error = apps::max_error(expected.field, field);
  const double difference = std::abs(gosa - expected.gosa);
  result.gosa_error = difference == 0 ? 0 : difference / expected.gosa;
  return result;
}

}  // namespace himeno
