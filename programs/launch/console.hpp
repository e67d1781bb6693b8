// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The launcher's own output: threads write it, so that no other part of the launcher waits for a reader.

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace beeline::launcher {

/// The origin of a text. Consecutive texts of one source form one line until a text ends it.
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

  /// Appends to the line of `source`, which begins with `prefix`. First ends an unfinished line of another source.
  ///   descriptor  STDOUT_FILENO or STDERR_FILENO
  void print(int descriptor, Source source, std::string_view prefix, std::string_view text, bool ends_line);
  /// Prints a line of the launcher itself on standard error.
  void report(std::string_view text) { print(2, launcher_source, {}, text, true); }
  /// Whether the last text of `source` was an unfinished line that is still the last line of the descriptor.
  [[nodiscard]] bool is_open(int descriptor, Source source) const;

  /// Whether the buffer has room. A caller that prints although it has none makes the buffer grow.
  [[nodiscard]] bool has_room(int descriptor) const;
  /// Bytes that no reader has taken yet.
  [[nodiscard]] std::size_t pending() const;
  /// Why a descriptor cannot be written (an errno); 0 if both can. Text for that descriptor is dropped.
  [[nodiscard]] int fault() const;
  /// For poll(): readable when pending() or fault() has changed since the last call of lower().
  [[nodiscard]] int descriptor() const;
  void lower() const;

 private:
  class Writer;
  struct File {
    std::shared_ptr<Writer> writer;
    Source open = launcher_source;  ///< the source of the unfinished last line
  };
  [[nodiscard]] std::size_t index(int descriptor) const { return is_one_file_ || descriptor == 1 ? 0 : 1; }

  bool is_one_file_;  ///< both descriptors lead to one terminal, pipe or file
  int changed_;
  std::array<File, 2> files_;
};

}  // namespace beeline::launcher
