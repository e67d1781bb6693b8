// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What streams refuse before anything is touched.

#include <cstddef>
#include <cstdint>

namespace beeline {

/// Throws invalid_argument where the two places of a copy overlap: what would arrive depends on how it is made.
void check_copy(const void* destination, const void* source, std::size_t bytes);
/// Throws invalid_argument for a signal that is not aligned to its 8 bytes: it could be seen half written.
void check_signal(const std::uint64_t* signal);

}  // namespace beeline
