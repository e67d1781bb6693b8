// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Threads that carry out transfers of files for GPUs' streams, whose own callbacks would hold up those of other
/// streams.

#include <functional>

namespace beeline::hpe::detail {

/// Runs `work`, which may wait for other such work, on a thread of its own: one that is idle, or a new one. Throws
/// no_resource if there is none.
void run_on_file_thread(std::function<void()> work);

}  // namespace beeline::hpe::detail
