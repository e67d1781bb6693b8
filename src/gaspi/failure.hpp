// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How functions of this library end inside: a result, or a failure with the value that the caller gets and a text.

#include <cstdint>
#include <stdexcept>
#include <string>

namespace beeline::gaspi {

/// Results of calls, with the standard's values.
enum class Result : std::int32_t { error = -1, success = 0, timeout = 1 };

/// The failure of a call. The guard of the public functions logs its text, and returns its value to the program.
class Failure : public std::runtime_error {
 public:
  ///   value  a gaspi_return_t other than success and time-out
  Failure(std::int32_t value, const std::string& text) : std::runtime_error(text), value_(value) {}
  explicit Failure(const std::string& text) : Failure(static_cast<std::int32_t>(Result::error), text) {}
  [[nodiscard]] std::int32_t value() const { return value_; }

 private:
  std::int32_t value_;
};

}  // namespace beeline::gaspi
