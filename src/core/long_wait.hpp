// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What work that waiting threads do may know about the wait.

namespace beeline::detail {

/// Whether the wait for which this thread works has lasted so long that it would sleep if there were no work.
[[nodiscard]] bool is_in_long_wait() noexcept;

}  // namespace beeline::detail
