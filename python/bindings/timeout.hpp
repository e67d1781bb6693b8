// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Time-outs as Python passes them: seconds, or None.

#include <fmt/format.h>
#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>

#include "beeline/core/error.hpp"
#include "beeline/device/wait.hpp"

namespace beeline::python {

using Seconds = std::optional<double>;

/// Throws ValueError for an invalid duration. A duration longer than any deadline means no limit.
[[nodiscard]] inline Timeout timeout_of(Seconds seconds) {
  constexpr double longest_s = 1e9;
  if (!seconds || *seconds > longest_s) return Timeout::none();
  if (!(*seconds >= 0))
    throw nanobind::value_error(fmt::format("timeout: a number of seconds from 0 on, not {}", *seconds).c_str());
  return {static_cast<std::uint64_t>(*seconds * 1e9)};
}

/// Unless the call is over, throws an error that becomes a TimeoutError.
///   rank  this rank in the world
inline void require_over(Status status, const char* call, Seconds timeout, int rank) {
  if (status == Status::timeout)
    throw Error(
        status,
        fmt::format("{} was not over after {} s; it goes on, and the same call continues", call, timeout.value_or(0)),
        rank);
}

}  // namespace beeline::python
