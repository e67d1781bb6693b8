// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A job: the processes of one world from their start to their common end.

#include "options.hpp"

namespace beeline::launcher {

/// Starts the ranks, passes their output on, and blocks until all have ended. Returns the launcher's exit code: 0, the
/// exit code of the rank that failed first, or 128 + signal; with keep_going, 0 if any rank ended well. Throws
/// beeline::Error when the job cannot start; then no process runs.
///   guardian  descriptor for poll(), readable once the guardian has ended: then the job ends at once
[[nodiscard]] int run(const Options& options, int guardian);

}  // namespace beeline::launcher
