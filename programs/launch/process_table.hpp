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

/// All that this process sees.
[[nodiscard]] std::vector<ListedProcess> listed_processes();

}  // namespace beeline::launch
