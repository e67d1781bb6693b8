// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A word on each rank, and ping-pongs over the word.

#include <memory>
#include <string>

#include "harness/group_choice.hpp"
#include "harness/timed_kernel.hpp"

namespace beeline::bench {

class TimedFlag {
 public:
  /// Collective.
  explicit TimedFlag(Bench& bench) : bench_(bench), word_(bench.world(), 1), timed_(bench) {}

  [[nodiscard]] std::uint64_t* word() const { return &word_.data()->value; }

  /// Collective. See `TimedKernel::run`.
  template <class Kernel, class... Args>
  std::vector<double> run(unsigned threads, Rounds rounds, Kernel kernel, Args... args) {
    return timed_.run(threads, bench_.paired(), rounds, kernel, args...);
  }

  /// Collective. Whether the word holds the last signal that was sent.
  [[nodiscard]] bool complete() {
    bench_.world().barrier();
    if (!bench_.paired()) return true;
    std::uint64_t observed = 0;
    bench_.world().copy(&observed, word(), sizeof observed);
    return observed == timed_.last();
  }

 private:
  Bench& bench_;
  SymmetricArray<PaddedWord> word_;
  TimedKernel timed_;
};

/// A measurement of a ping-pong over `flag`, one way.
[[nodiscard]] inline Measurement flag_measurement(Bench& bench, std::shared_ptr<TimedFlag> flag, std::string operation,
                                                  std::string method, const char* order,
                                                  std::function<std::vector<double>(Rounds)> time) {
  Measurement measurement{
      .operation = std::move(operation), .method = std::move(method), .bytes = sizeof(std::uint64_t)};
  measurement.operations_per_iteration = 2;
  measurement.settings = single_thread(bench).settings();
  measurement.settings.emplace_back("order", order);
  measurement.verify = [flag = std::move(flag), time](std::uint64_t) {
    static_cast<void>(time({}));
    return flag->complete();
  };
  measurement.time = std::move(time);
  return measurement;
}

}  // namespace beeline::bench
