// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The processes of this machine, as the system lists them.

#include <sys/types.h>

#include <vector>

namespace beeline::launcher {

struct ListedProcess {
  pid_t pid, parent, group;
  char state;  ///< as in /proc/PID/stat

  /// Whether it is a zombie, of which only the exit status is left.
  [[nodiscard]] bool ended() const { return state == 'Z'; }
  /// Whether a signal, as SIGSTOP, has stopped it (not a debugger).
  [[nodiscard]] bool stopped() const { return state == 'T'; }
};

/// All processes that /proc shows to this process; empty if /proc is not mounted or shows another PID namespace.
[[nodiscard]] std::vector<ListedProcess> listed_processes();

/// Whether /proc shows the PID namespace of this process: only then can its numbers be used in system calls.
[[nodiscard]] bool proc_is_own();

/// Children of this process that have not been reaped, including those that its threads started. Reads /proc; if /proc
/// shows another namespace, asks the system about each number, which takes up to a second if process numbers have
/// wrapped around since this process was made.
[[nodiscard]] std::vector<pid_t> children();

/// Whether `pid` is a child of this process, and whether it has ended.
struct ChildState {
  bool is_child, ended;
};
[[nodiscard]] ChildState child_state(pid_t pid);

}  // namespace beeline::launcher
