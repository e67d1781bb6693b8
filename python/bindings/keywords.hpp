// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Values of keywords that several parts of the module have.

#include <fmt/format.h>
#include <nanobind/nanobind.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace beeline::python {

/// The position of a name among the values of an option. Throws ValueError that lists them.
template <std::size_t count>
unsigned choice_of(const char* option, const std::string& text, const char* const (&names)[count]) {
  std::string known;
  for (unsigned i = 0; i < count; ++i) {
    if (text == names[i]) return i;
    known += fmt::format("{}{}", i == 0 ? "" : ", ", names[i]);
  }
  throw nanobind::value_error(fmt::format("{}: {}; known are {}", option, text, known).c_str());
}

/// A deadline in seconds. Throws ValueError.
inline std::optional<std::chrono::nanoseconds> deadline_of(std::optional<double> seconds) {
  if (!seconds) return std::nullopt;
  constexpr double longest_s = 1e9;
  if (!(*seconds > 0 && *seconds <= longest_s))
    throw nanobind::value_error(fmt::format("deadline_s: a number of seconds from 0 to 1e9, not {}", *seconds).c_str());
  return std::chrono::nanoseconds(static_cast<std::int64_t>(*seconds * 1e9));
}

}  // namespace beeline::python
