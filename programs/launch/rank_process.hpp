// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One process of a job with its output and its end.

#include <memory>
#include <optional>
#include <string>

#include "options.hpp"
#include "output.hpp"
#include "process.hpp"

namespace beeline::launch {

/// How a process ended.
struct Ending {
  bool killed;  ///< by signal `value`; otherwise it exited with code `value`
  int value;

  [[nodiscard]] bool success() const { return !killed && value == 0; }
  /// What a shell would report.
  [[nodiscard]] int exit_code() const { return killed ? 128 + value : value; }
  /// `was killed by signal 9 (SIGKILL)`, `exited with code 3`.
  [[nodiscard]] std::string text() const;
};

/// `SIGKILL`; the number for a signal without a name.
[[nodiscard]] std::string signal_name(int signal);

class RankProcess {
 public:
  /// `rank` -1: the one process of a world of threads.
  RankProcess(int rank, Process process, const Options& options);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] pid_t pid() const { return process_.pid; }
  [[nodiscard]] const History& history() const { return *history_; }
  [[nodiscard]] const std::optional<Ending>& ending() const { return ending_; }
  [[nodiscard]] int standard_output() const { return process_.standard_output.get(); }
  [[nodiscard]] int standard_error() const { return process_.standard_error.get(); }

  /// Passes on what the pipes hold. 0, or why the launcher's own output cannot be written: an errno.
  [[nodiscard]] int pump();
  /// Prints what is left without a newline.
  [[nodiscard]] int finish_output();
  /// Looks whether the process has ended. It stays a zombie until reap(), so that its process group's id cannot mean
  /// anything else meanwhile.
  void check();
  /// To the process and all that it started, as long as they stay in its process group.
  void signal_group(int signal) const;
  void reap();

 private:
  int rank_;
  Process process_;
  std::unique_ptr<History> history_;  ///< at a fixed address: the splitters point to it
  LineSplitter output_, error_;
  std::optional<Ending> ending_;
};

}  // namespace beeline::launch
