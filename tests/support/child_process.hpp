// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A forked child that runs a function and reports how it ended.

#include <sys/types.h>

#include <functional>
#include <string>

#include "beeline/runtime/file_descriptor.hpp"

namespace beeline_test {

/// Forks, runs `body(line written by tell())` in the child, and reads the child's answer through a pipe. The child dies
/// with its parent.
class ChildProcess {
 public:
  /// Returns in the parent only. An exception thrown by `body` becomes the answer's text, with exit code 1.
  explicit ChildProcess(const std::function<std::string(const std::string& told)>& body);
  /// Kills the child if it still runs.
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;

  /// Sends the child the line of text with which its body starts. Called once.
  void tell(const std::string& text);
  /// A descriptor for poll(), readable when the child has answered or ended.
  [[nodiscard]] int descriptor() const { return answers_.get(); }
  /// Reads available data; true once the child has ended.
  [[nodiscard]] bool read_more();
  void kill();

  [[nodiscard]] const std::string& answer() const { return answer_; }
  [[nodiscard]] bool ended() const { return pid_ < 0; }
  [[nodiscard]] int exit_code() const { return exit_code_; }
  [[nodiscard]] int signal() const { return signal_; }

 private:
  void reap();
  pid_t pid_ = -1;
  beeline::FileDescriptor orders_, answers_;
  std::string answer_;
  int exit_code_ = 0, signal_ = 0;
};

}  // namespace beeline_test
