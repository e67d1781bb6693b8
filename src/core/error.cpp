// SPDX-License-Identifier: Apache-2.0
#include "beeline/core/error.hpp"

#include <fmt/format.h>

#include <array>

namespace beeline {

const char* name(Status status) noexcept {
  constexpr std::array names = {"ok",          "in_progress",      "timeout",     "no_resource", "deadline", "aborted",
                                "unreachable", "invalid_argument", "unavailable", "peer_died",   "internal"};
  const auto index = static_cast<std::size_t>(status);
  return index < names.size() ? names[index] : "unknown";
}

const char* name(Operation operation) noexcept {
  const auto index = static_cast<std::size_t>(operation);
  return index < operations ? detail::operation_names[index] : "unknown";
}

Error::Error(Status code, const std::string& message, int rank, std::source_location where)
    : std::runtime_error(rank < 0 ? fmt::format("{}: {}", name(code), message)
                                  : fmt::format("{}: rank {}: {}", name(code), rank, message)),
      code_(code), rank_(rank), where_(where) {}

}  // namespace beeline
