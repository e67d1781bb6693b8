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

namespace beeline::launch {

/// The last lines that a rank printed, on either stream.
class History {
 public:
  void add(std::string_view line);
  [[nodiscard]] const std::deque<std::string>& lines() const { return lines_; }

 private:
  std::deque<std::string> lines_;
};

/// Where the lines of one stream of one rank go.
struct LineTarget {
  Console* console = nullptr;
  Source source = launcher_source;
  std::string prefix;
  int descriptor = 1;        ///< where plain lines go
  bool passes_json = false;  ///< lines that are JSON go to standard output without prefix
  History* history = nullptr;
};

/// Turns the bytes of a pipe into lines. The beginning of a line is printed, too, if its end does not follow at once,
/// as of a question or a progress bar; with passes_json only if it cannot be JSON.
class LineSplitter {
 public:
  using Clock = std::chrono::steady_clock;

  explicit LineSplitter(LineTarget target) : target_(std::move(target)) {}
  void feed(std::string_view bytes);
  /// The pipe is closed: prints what has no newline.
  void finish();
  /// Prints the beginning of a line if it is due.
  void print_beginning(Clock::time_point now);
  /// When print_beginning() has something to print.
  [[nodiscard]] Clock::time_point due() const { return due_; }
  [[nodiscard]] bool has_room() const;

 private:
  void end_line();
  LineTarget target_;
  std::string partial_;      ///< of a line whose end has not come
  std::size_t printed_ = 0;  ///< bytes of it
  Clock::time_point due_ = Clock::time_point::max();
};

}  // namespace beeline::launch
