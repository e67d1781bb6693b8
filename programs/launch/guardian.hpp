// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Two processes that watch over each other, so that whatever ends one of them (kill -9) the job's processes end too.

#include <sys/types.h>

#include <csignal>
#include <functional>

namespace beeline::launch {

/// Runs `job` in a child process and returns its exit code, 128 + signal where a signal ended it. This process passes
/// signals on, and ends what the job leaves behind.
///   job  must not throw; gets a descriptor that is readable once this process has ended: the job is to end then
/// To be called before any thread exists. Throws no_resource.
[[nodiscard]] int run_guarded(const std::function<int(int guardian)>& job);

/// Undoes what this process has inherited: no signal is blocked, and none is ignored, except those that nohup, and
/// shells for their background jobs, ignore on purpose.
void reset_signals();

/// The signals that the launcher's processes handle by themselves: to outlive the job, to end it in good order, and to
/// pass them on. What is ignored stays so.
[[nodiscard]] sigset_t handled_signals();

/// From now on, what descendants of this process leave behind when they end become its own children, in whatever
/// session or process group they are.
void adopt_orphans();

/// Forgets adopted processes that have ended; those of which `is_kept` is true keep their exit status.
void reap_orphans(const std::function<bool(pid_t)>& is_kept);

/// Kills every child of this process and what they started, except those that have ended already.
void end_children();

}  // namespace beeline::launch
