// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The beginning and the end of the process.

#include <cstdint>

#include "gaspi/failure.hpp"

namespace beeline::gaspi {

/// Whether an initialization has begun and the termination has not ended.
[[nodiscard]] bool has_begun();
/// Joins the world. After a time-out the next call continues.
[[nodiscard]] Result begin_process(std::uint64_t timeout_ms);
/// Leaves the world, together with all healthy ranks.
[[nodiscard]] Result end_process(std::uint64_t timeout_ms);

}  // namespace beeline::gaspi
