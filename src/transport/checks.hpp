// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What streams refuse before anything is touched.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace beeline {

class Stream;

/// Whether a copy has anything to do: not of 0 bytes, nor of a range onto itself. Throws invalid_argument for a null
/// address, and where the two places overlap otherwise: what would arrive depends on how it is made.
[[nodiscard]] bool moves_anything(void* destination, const void* source, std::size_t bytes);
/// Throws invalid_argument for a signal that is not aligned to its 8 bytes: it could be seen half written.
void check_signal(const std::uint64_t* signal);
/// Why signals and waits with a fixed value cannot be captured.
inline constexpr std::string_view fixed_in_graphs = "each of its runs would have the same value; give it a sequence";
/// Throws unavailable: `what` cannot be captured in a graph, and why.
[[noreturn]] void refuse_capture(std::string_view what, std::string_view why);
/// The same, but only while the stream is captured.
void refuse_captured(const Stream& stream, std::string_view what, std::string_view why);

}  // namespace beeline
