// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Output of the ranks: split into lines, prefixed, remembered for the message about a death.

#include <deque>
#include <string>
#include <string_view>

namespace beeline::launch {

/// The first of two faults; 0: there is none.
[[nodiscard]] constexpr int first_of(int fault, int later) { return fault != 0 ? fault : later; }

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
  std::string prefix;
  int descriptor = 1;        ///< where plain lines go
  bool passes_json = false;  ///< lines that are JSON go to standard output without prefix
  History* history = nullptr;
};

/// Turns the bytes of a pipe into whole lines.
class LineSplitter {
 public:
  explicit LineSplitter(LineTarget target) : target_(std::move(target)) {}
  /// 0, or why the launcher's own output cannot be written: an errno.
  [[nodiscard]] int feed(std::string_view bytes);
  /// The pipe is closed: prints what has no newline.
  [[nodiscard]] int finish();

 private:
  [[nodiscard]] int print(std::string_view line);
  LineTarget target_;
  std::string partial_;
};

}  // namespace beeline::launch
