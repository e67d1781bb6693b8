// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The process that made a world. Its forks cannot use the world.

#include <fmt/format.h>
#include <unistd.h>

#include "beeline/core/error.hpp"
#include "core/fork.hpp"

namespace beeline {

class OwnProcess {
 public:
  explicit OwnProcess(int rank) : rank_(rank) {}
  /// Whether this process was forked from the process that made the world.
  [[nodiscard]] bool is_forked() const { return fork_depth_ != detail::fork_depth(); }
  /// Throws invalid_argument if this process is such a fork.
  void require() const {
    if (!is_forked()) return;
    throw Error(Status::invalid_argument,
                fmt::format("process {} is a fork of process {}, which is rank {} of this world: a forked process "
                            "cannot use its parent's world, and makes one of its own after the fork if it needs one",
                            ::getpid(), process_, rank_),
                rank_);
  }

 private:
  const int rank_;
  const std::uint32_t fork_depth_ = detail::fork_depth();
  const pid_t process_ = ::getpid();
};

}  // namespace beeline
