// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the system says about its processes.

#include <sys/types.h>

#include <vector>

namespace beeline::launch {

struct ListedProcess {
  pid_t pid, parent, group;
  char state;  ///< as in /proc/PID/stat

  /// A zombie: only its exit status is left.
  [[nodiscard]] bool ended() const { return state == 'Z'; }
  /// By a signal, as SIGSTOP; not by a debugger.
  [[nodiscard]] bool stopped() const { return state == 'T'; }
};

/// All that this process sees in /proc; nothing where /proc is not mounted, or numbers processes for another namespace.
[[nodiscard]] std::vector<ListedProcess> listed_processes();

/// Whether /proc shows the PID namespace of this process: only then do its numbers mean the same in system calls.
[[nodiscard]] bool proc_is_own();

/// Children of this process that have not been reaped, threads of it included. By /proc, or, where that is not its own,
/// by asking the system for each number: up to a second if numbers have begun anew since this process was made.
[[nodiscard]] std::vector<pid_t> children();

/// Whether `pid` is such a child, and whether it has ended.
struct ChildState {
  bool is_child, ended;
};
[[nodiscard]] ChildState child_state(pid_t pid);

}  // namespace beeline::launch
