// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One process of a job with its output and its end.

#include <poll.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "options.hpp"
#include "output.hpp"
#include "process.hpp"

namespace beeline::launcher {

/// How a process ended.
struct Ending {
  bool killed;  ///< by signal `value`; otherwise it exited with code `value`
  int value;

  [[nodiscard]] bool success() const { return !killed && value == 0; }
  /// The exit code that a shell would report.
  [[nodiscard]] int exit_code() const { return killed ? 128 + value : value; }
  /// `was killed by signal 9 (SIGKILL)`, `exited with code 3`.
  [[nodiscard]] std::string text() const;
};

/// `SIGKILL`; the number for a signal without a name.
[[nodiscard]] std::string signal_name(int signal);

class RankProcess {
 public:
  ///   rank  -1 for the one process of a world of threads
  RankProcess(int rank, Process process, const Options& options, Console& console);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] pid_t pid() const { return process_.pid; }
  [[nodiscard]] const History& history() const { return *history_; }
  [[nodiscard]] const std::optional<Ending>& ending() const { return ending_; }
  /// Whether an output pipe of the process is still open.
  [[nodiscard]] bool has_output() const { return process_.standard_output || process_.standard_error; }
  /// Moves out the pipe to its standard input, if it has one.
  [[nodiscard]] FileDescriptor take_input() { return std::move(process_.standard_input); }

  /// Appends the pipes that poll() should watch; with `needs_room` only those whose output the console has room for.
  void append_to(std::vector<pollfd>& set, bool needs_room) const;
  /// Passes on some of what the pipes hold; with `needs_room` only if the console has room.
  void pump(bool needs_room);
  /// Prints unfinished lines that are due, and returns when the next ones are due.
  LineSplitter::Clock::time_point print_beginnings(LineSplitter::Clock::time_point now);
  /// Prints the last lines, which have no newline.
  void finish_output();
  /// Checks whether the process has ended. It stays a zombie until reap(), so that no other process group gets its id
  /// meanwhile.
  void check();
  /// Whether a signal has stopped the process.
  [[nodiscard]] bool is_stopped() const;
  /// Sends the signal to the process and its descendants in its process group. On another host it goes to the process
  /// alone; SIGKILL cuts the connection, which ends the process there.
  void signal_group(int signal) const;
  /// Sends the signal to the process alone.
  void signal_process(int signal) const;
  void reap();

 private:
  void send_word(int signal) const;
  int rank_;
  bool is_remote_;
  Process process_;
  std::unique_ptr<History> history_;  ///< at a fixed address: the splitters point to it
  LineSplitter output_, error_;
  std::optional<Ending> ending_;
};

}  // namespace beeline::launcher
