// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The launcher's own output: threads write it, so that no other part of the launcher waits for a reader.

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace beeline::launch {

/// Where a text comes from. Texts of one source that follow each other form one line until it is ended.
using Source = int;
inline constexpr Source launcher_source = 0;

/// Standard output and standard error. One thread calls all functions.
class Console {
 public:
  /// Throws no_resource.
  Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  /// Does not wait for a reader.
  ~Console();

  /// Appends to the line of `source`, which begins with `prefix`. Ends the line that another source has begun there.
  ///   descriptor  STDOUT_FILENO or STDERR_FILENO
  void print(int descriptor, Source source, std::string_view prefix, std::string_view text, bool ends_line);
  /// A line of the launcher's own on standard error.
  void report(std::string_view text) { print(2, launcher_source, {}, text, true); }
  /// Whether the last text of `source` was an unfinished line, and still is the last line there.
  [[nodiscard]] bool is_open(int descriptor, Source source) const;

  /// Whether there is room: a caller that goes on printing without it stores all that it prints.
  [[nodiscard]] bool has_room(int descriptor) const;
  /// Bytes that no reader has taken yet.
  [[nodiscard]] std::size_t pending() const;
  /// Why a descriptor cannot be written: an errno; 0: both can. What is printed there is dropped.
  [[nodiscard]] int fault() const;
  /// For poll(): readable when pending() or fault() has changed since the last call of lower().
  [[nodiscard]] int descriptor() const;
  void lower() const;

 private:
  class Writer;
  struct File {
    std::shared_ptr<Writer> writer;
    Source open = launcher_source;  ///< whose unfinished line is the last one
  };
  [[nodiscard]] std::size_t index(int descriptor) const { return is_one_file_ || descriptor == 1 ? 0 : 1; }

  bool is_one_file_;  ///< both descriptors lead to one terminal, pipe or file
  int changed_;
  std::array<File, 2> files_;
};

}  // namespace beeline::launch
