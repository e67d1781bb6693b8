// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Standard input of the launcher on its way to ranks.

#include <poll.h>

#include <string>
#include <vector>

#include "beeline/runtime/file_descriptor.hpp"

namespace beeline::launch {

/// Passes on what a process of its own reads, which stays in the process group that the terminal listens to. Ranks that
/// do not read hold up the others once their pipes are full; those that have closed their input do not count.
class StandardInput {
 public:
  /// To be made before any thread exists, in a process whose parent is in the terminal's group. Throws no_resource.
  StandardInput();

  /// A pipe's end, non-blocking, that everything is written to.
  void add(FileDescriptor pipe) { targets_.push_back({std::move(pipe), 0}); }
  /// Appends what poll() is to wait for.
  void append_to(std::vector<pollfd>& set) const;
  /// After poll(): reads and writes what is possible.
  void move();

 private:
  struct Target {
    FileDescriptor pipe;
    std::size_t taken;  ///< bytes of buffer_
  };
  void write();

  FileDescriptor source_;  ///< closed: at the end
  std::string buffer_;     ///< what some target has not taken
  std::vector<Target> targets_;
};

}  // namespace beeline::launch
