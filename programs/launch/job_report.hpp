// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How a job ended: in words, and as the launcher's exit code.

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "beeline/runtime/rendezvous.hpp"
#include "options.hpp"
#include "rank_process.hpp"

namespace beeline::launcher {

/// What ended a job. Empty, 0 and -1 where nothing did.
struct JobEnd {
  int culprit = -1;                     ///< index of the process that failed first; -1: none of them
  int interrupt = 0;                    ///< signal that ended the job
  int output_fault = 0;                 ///< why the output cannot be written: an errno
  std::vector<int> terminated;          ///< ranks that did not end by themselves
  std::chrono::duration<double> limit;  ///< their time to end: shorter if the user insisted
  std::vector<int> stopped;             ///< ranks that a signal had stopped, which therefore could not end
  std::vector<int> given_up;  ///< keep_going: ranks that count as failed, by their exit or by other ranks' reports

  [[nodiscard]] bool has_given_up(int rank) const { return std::ranges::find(given_up, rank) != given_up.end(); }
};

/// Keeps references to all it is given.
class JobReport {
 public:
  ///   server  nullptr when the ranks are threads
  JobReport(const Options& options, const std::vector<RankProcess>& processes, const RendezvousServer* server)
      : options_(options), processes_(processes), server_(server) {}

  /// Who ended, and how; with the reason that the rank reported, if any.
  [[nodiscard]] std::string text_of(const RankProcess& process, bool with_reason = true) const;
  /// If the error of the culprit names another rank that failed as its cause, that rank becomes the culprit. Called
  /// when all ranks have ended.
  void find_cause(JobEnd& end) const;
  /// The lines to print at the end.
  [[nodiscard]] std::vector<std::string> lines(const JobEnd& end) const;
  /// See run() in job.hpp.
  [[nodiscard]] int exit_code(const JobEnd& end) const;

 private:
  [[nodiscard]] std::string reason_of(const RankProcess& process) const;
  [[nodiscard]] const RankProcess& process_at(int index) const { return processes_[static_cast<std::size_t>(index)]; }
  /// The line on what ended the job, and the culprit's last lines.
  void add_cause(const JobEnd& end, std::vector<std::string>& lines) const;

  const Options& options_;
  const std::vector<RankProcess>& processes_;
  const RendezvousServer* server_;
};

}  // namespace beeline::launcher
