// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Output of the ranks: split into lines, prefixed, remembered for the message about a death.

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "console.hpp"

namespace beeline::launcher {

/// The last lines that a rank printed, on either stream.
class History {
 public:
  void add(std::string_view line);
  /// Records that the rank's host has said that it starts the rank.
  void note_greeting() { has_greeting_ = true; }
  [[nodiscard]] bool has_greeting() const { return has_greeting_; }
  [[nodiscard]] const std::deque<std::string>& lines() const { return lines_; }

 private:
  std::deque<std::string> lines_;
  bool has_greeting_ = false;
};

/// The destination of the lines of one stream of one rank.
struct LineTarget {
  Console* console = nullptr;
  Source source = launcher_source;
  std::string prefix;
  int descriptor = 1;        ///< where plain lines go
  bool passes_json = false;  ///< lines that are JSON go to standard output without prefix
  History* history = nullptr;
  std::string_view greeting;  ///< the line of the rank's host that is noted, and not printed; empty: none
};

/// Splits the bytes of a pipe into lines. If the end of a line does not follow at once (a question, a progress bar),
/// the beginning is printed alone; with passes_json only if the line cannot be JSON.
class LineSplitter {
 public:
  using Clock = std::chrono::steady_clock;

  explicit LineSplitter(LineTarget target) : target_(std::move(target)) {}
  void feed(std::string_view bytes);
  /// Called when the pipe is closed: prints the last line, which has no newline.
  void finish();
  /// Prints the beginning of a line if it is due.
  void print_beginning(Clock::time_point now);
  /// When print_beginning() next has text to print.
  [[nodiscard]] Clock::time_point due() const { return due_; }
  [[nodiscard]] bool has_room() const;

 private:
  void end_line();
  LineTarget target_;
  std::string partial_;      ///< beginning of a line without its end yet
  std::size_t printed_ = 0;  ///< bytes of partial_ that were printed
  Clock::time_point due_ = Clock::time_point::max();
};

}  // namespace beeline::launcher
