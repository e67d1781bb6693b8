// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The exception that every set-up function and every host-side wait throws.

#include <source_location>
#include <stdexcept>
#include <string>

#include "beeline/core/status.hpp"

namespace beeline {

/// A failure: its code, the rank on which it occurred (-1: no rank yet), and the location in the source where it was
/// detected.
class Error : public std::runtime_error {
 public:
  Error(Status code, const std::string& message, int rank = -1,
        std::source_location where = std::source_location::current());

  [[nodiscard]] Status code() const noexcept { return code_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] const std::source_location& where() const noexcept { return where_; }

 private:
  Status code_;
  int rank_;
  std::source_location where_;
};

/// Throws `Error(code, message)` unless `condition` holds.
inline void require(bool condition, Status code, const std::string& message,
                    std::source_location where = std::source_location::current()) {
  if (!condition) throw Error(code, message, -1, where);
}

}  // namespace beeline
