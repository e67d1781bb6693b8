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
  constexpr std::array names = {"none",        "wait",           "wait_any",
                                "grid_sync",   "packet_send",    "packet_receive",
                                "staged_send", "staged_receive", "stream_synchronize",
                                "setup",       "user",           "put",
                                "get",         "signal",         "signal_add",
                                "atomic",      "collective",     "send",
                                "receive",     "exchange",       "at",
                                "flush",       "quiet",          "copy",
                                "barrier",     "broadcast",      "scatter",
                                "gather",      "allgather",      "reduce",
                                "allreduce",   "reduce_scatter", "alltoall",
                                "alltoallv"};
  static_assert(names.size() == operations);
  const auto index = static_cast<std::size_t>(operation);
  return index < names.size() ? names[index] : "unknown";
}

Error::Error(Status code, const std::string& message, int rank, std::source_location where)
    : std::runtime_error(rank < 0 ? fmt::format("{}: {}", name(code), message)
                                  : fmt::format("{}: rank {}: {}", name(code), rank, message)),
      code_(code), rank_(rank), where_(where) {}

}  // namespace beeline
