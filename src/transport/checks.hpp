// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Checks by which streams refuse operations before anything is touched.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace beeline {

class Stream;

/// Whether a copy has anything to do: it has not for 0 bytes, or a range onto itself. Throws invalid_argument for a
/// null address, and for ranges that otherwise overlap: the result would depend on how the copy is made.
[[nodiscard]] bool moves_anything(void* destination, const void* source, std::size_t bytes);
/// Throws invalid_argument for a signal that is not aligned to its 8 bytes: a reader could see it half written.
void check_signal(const std::uint64_t* signal);
/// Why signals and waits with a fixed value cannot be captured.
inline constexpr std::string_view fixed_in_graphs = "each of its runs would have the same value; give it a sequence";
/// Throws unavailable: `what` cannot be captured in a graph, and why.
[[noreturn]] void refuse_capture(std::string_view what, std::string_view why);
/// As `refuse_capture`, but only while the stream is captured.
void refuse_captured(const Stream& stream, std::string_view what, std::string_view why);

}  // namespace beeline
