// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Ranks of one world that run job after job: creating a world takes longer than most jobs.

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "beeline/runtime/file_descriptor.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test {

/// Ranks that make a world and stay in it until one of them fails a job, or their owner ends them.
class StandingRanks {
 public:
  /// What a rank does for job `number`. Returns why it skipped the job, or an empty text; all ranks return the same.
  /// Throws when the job fails.
  using Job = std::function<std::string(beeline::World& world, int number)>;
  struct Result {
    std::vector<RankOutcome> outcomes;  ///< by rank
    std::string skipped;                ///< why all ranks skipped the job; empty if they ran it
  };

  /// Ranks that are processes are forked: see `run_ranks`.
  StandingRanks(WorldKind kind, int size, const beeline::Config& config, Job job);
  ~StandingRanks() { static_cast<void>(end()); }
  StandingRanks(const StandingRanks&) = delete;
  StandingRanks& operator=(const StandingRanks&) = delete;

  /// Every rank runs job `number`. Ranks that have not finished after `limit_s` are killed (threads: with the whole
  /// test).
  [[nodiscard]] Result run(int number, int limit_s = 120);
  /// Whether the ranks have ended, as after a failure: they take no more jobs.
  [[nodiscard]] bool ended() const { return !runner_.joinable(); }
  /// The ranks leave the world and end. Returns the outcome of each, by rank.
  std::vector<RankOutcome> end();

 private:
  using Clock = std::chrono::steady_clock;
  /// A socket between the owner and one rank: it carries job numbers to the rank, and messages back.
  struct Line {
    beeline::FileDescriptor owner, rank;
    pid_t process = 0;  ///< 0 until the rank is in its world
  };

  void serve(beeline::World& world);
  void host(WorldKind kind, const beeline::Config& config);
  void tell_all(int number);
  [[nodiscard]] std::string hear(Line& line, Clock::time_point limit);
  void join();
  void kill_all();

  const Job job_;
  std::vector<Line> lines_;
  std::vector<RankOutcome> outcomes_;  ///< set when the ranks have ended
  std::thread runner_;
};

}  // namespace beeline_test
