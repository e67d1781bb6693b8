// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A job: the processes of one world from their start to their common end.

#include "options.hpp"

namespace beeline::launch {

/// Starts the ranks, passes their output on, and blocks until all have ended. Returns the launcher's exit code: 0, that
/// of the rank that failed first, or 128 + signal; with keep_going 0 where any rank ended well. Throws beeline::Error
/// when the job cannot start; nothing runs then.
///   guardian  readable, for poll(), once the job is to end at once because its guardian has ended
[[nodiscard]] int run(const Options& options, int guardian);

}  // namespace beeline::launch
