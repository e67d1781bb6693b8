// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Log lines on standard error, by level (`BEELINE_LOG`).

#include <string_view>

namespace beeline {

enum class LogLevel { error, warning, info, debug };

/// Writes one line, `beeline[rank] level: text`, when `level` is enabled. Any thread may call it.
void log(LogLevel level, std::string_view text, int rank = -1);

/// As `log`, for threads that must not wait: returns false without writing if standard error cannot take the line at
/// once, like a full pipe. The text has less than 4 KiB, so that a pipe takes the whole line or nothing.
[[nodiscard]] bool log_at_once(LogLevel level, std::string_view text, int rank = -1);

/// Whether a line of this level would be written. Call it before building a text that takes long.
[[nodiscard]] bool log_enabled(LogLevel level) noexcept;

/// Sets the most detailed level that is written. Default: warning.
void set_log_level(LogLevel level) noexcept;

}  // namespace beeline
