// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reading environment variables.

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>

#include "beeline/core/error.hpp"

namespace beeline::detail {

/// The value of a variable. An empty variable counts as unset.
[[nodiscard]] inline std::optional<std::string> environment(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return std::string(text);
}

[[noreturn]] inline void refuse(const char* variable, const std::string& text, const std::string& expected) {
  throw Error(Status::invalid_argument, fmt::format("{}=\"{}\": expected {}", variable, text, expected));
}

template <class T>
[[nodiscard]] T to_number(const char* variable, const std::string& text, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most)
    refuse(variable, text, fmt::format("a number from {} to {}", least, most));
  return value;
}

}  // namespace beeline::detail
