// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Passing the launcher's standard input on to ranks.

#include <poll.h>

#include <string>
#include <vector>

#include "beeline/runtime/file_descriptor.hpp"

namespace beeline::launcher {

/// Passes on the bytes that a child process reads from standard input; the child stays in the terminal's foreground
/// process group. Once the pipe of a rank that does not read is full, the other ranks wait for it; ranks that have
/// closed their input do not count.
class StandardInput {
 public:
  /// Must be made before any thread exists, in a process whose parent is in the terminal's group. Throws no_resource.
  StandardInput();

  /// Adds the non-blocking end of a pipe to which all input is written.
  void add(FileDescriptor pipe) { targets_.push_back({std::move(pipe), 0}); }
  /// Appends the descriptors that poll() should watch.
  void append_to(std::vector<pollfd>& set) const;
  /// Called after poll(): reads and writes as much as possible.
  void move();

 private:
  struct Target {
    FileDescriptor pipe;
    std::size_t taken;  ///< bytes of buffer_ that were written
  };
  void write();

  FileDescriptor source_;  ///< closed at the end of the input
  std::string buffer_;     ///< bytes that at least one target has not taken
  std::vector<Target> targets_;
};

}  // namespace beeline::launcher
