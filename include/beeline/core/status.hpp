// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The result of an operation on a hot path.

#include <cstdint>

#include "beeline/core/macros.hpp"
#include "beeline/core/operation.hpp"

namespace beeline {

/// Result of an operation on a hot path. Set-up functions throw `Error` instead, with the same codes.
enum class Status : std::uint32_t {
  ok = 0,
  in_progress,       ///< not finished, nothing is wrong
  timeout,           ///< the call's own time-out passed; nothing is lost, and a repetition of the call continues it
  no_resource,       ///< a queue, table or the device is full; try again after progress
  deadline,          ///< the deadline passed while waiting; the team is aborted
  aborted,           ///< another member aborted the team
  unreachable,       ///< no path from the caller to this memory; nothing was touched
  invalid_argument,  ///< refused before anything was touched
  unavailable,       ///< this machine or build lacks what the operation needs
  peer_died,         ///< a rank ended without leaving the world
  internal           ///< a failure below Beeline (driver, operating system)
};

[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool failed(Status status) {
  return status != Status::ok && status != Status::in_progress;
}

/// The status's name as it appears in messages, in Python and in JSON.
[[nodiscard]] const char* name(Status status) noexcept;

}  // namespace beeline
