// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A word on each rank, and ping-pongs over it.

#include <memory>
#include <string>

#include "harness/group_choice.hpp"
#include "harness/timed_kernel.hpp"

namespace beeline::bench {

class TimedFlag {
 public:
  /// Collective.
  explicit TimedFlag(Session& session) : session_(session), word_(session.world(), 1), timed_(session) {}

  [[nodiscard]] std::uint64_t* word() const { return &word_.data()->value; }

  /// Collective. See `TimedKernel::run`.
  template <class Kernel, class... Args>
  std::vector<double> run(unsigned threads, Rounds rounds, Kernel kernel, Args... args) {
    return timed_.run(threads, session_.paired(), rounds, kernel, args...);
  }

  /// Collective. Whether the last signal is the last one that was sent.
  [[nodiscard]] bool complete() {
    session_.world().barrier();
    if (!session_.paired()) return true;
    std::uint64_t observed = 0;
    session_.world().copy(&observed, word(), sizeof observed);
    return observed == timed_.last();
  }

 private:
  Session& session_;
  SymmetricArray<PaddedWord> word_;
  TimedKernel timed_;
};

/// A measurement of a ping-pong over `flag`, one way.
[[nodiscard]] inline Measurement flag_measurement(Session& session, std::shared_ptr<TimedFlag> flag,
                                                  std::string operation, std::string method, const char* order,
                                                  std::function<std::vector<double>(Rounds)> time) {
  Measurement measurement{
      .operation = std::move(operation), .method = std::move(method), .bytes = sizeof(std::uint64_t)};
  measurement.operations_per_iteration = 2;
  measurement.settings = single_thread(session).settings();
  measurement.settings.emplace_back("order", order);
  measurement.verify = [flag = std::move(flag), time](std::uint64_t) {
    static_cast<void>(time({}));
    return flag->complete();
  };
  measurement.time = std::move(time);
  return measurement;
}

}  // namespace beeline::bench
