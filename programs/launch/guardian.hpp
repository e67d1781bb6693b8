// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Two processes that watch each other: if either ends for any reason (kill -9), the job's processes end, too.

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <vector>

#include "process_table.hpp"

namespace beeline::launcher {

/// Runs `job` in a child process and returns its exit code, or 128 + signal if a signal ended it. This process passes
/// signals on, and ends the processes that the job leaves behind.
///   job  must not throw. Its argument is a descriptor that becomes readable when this process ends: then the job must
///        end
/// Must be called before any thread exists. Throws no_resource.
[[nodiscard]] int run_guarded(const std::function<int(int guardian)>& job);

/// Resets the inherited signal state: no signal is blocked, and none is ignored except those that nohup, and shells for
/// their background jobs, ignore on purpose.
void reset_signals();

/// The signals that the launcher's processes handle themselves, in order to outlive the job, to end it in good order,
/// and to pass signals on. Signals that are ignored stay ignored.
[[nodiscard]] sigset_t handled_signals();

/// From now on, processes whose parent (a descendant of this process) ends become children of this process, whatever
/// their session or process group.
void adopt_orphans();

/// Reaps adopted processes that have ended; those for which `is_kept` returns true keep their exit status.
void reap_orphans(const std::function<bool(pid_t)>& is_kept);

/// Kills every child of this process and all descendants, except those that have ended already. This process adopts
/// orphans.
///   count  counts the children, in the same order each time
void end_children(const std::function<std::vector<pid_t>()>& count = children);

}  // namespace beeline::launcher
