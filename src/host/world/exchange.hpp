// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Exchanges of data among the members of a team on the host.

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "beeline/host/team.hpp"

namespace beeline::detail {

/// Collective. Returns the members' bytes, by rank. In teams other than the world a member contributes at most
/// `Team::max_gathered_bytes`. Throws invalid_argument if members are in different calls.
///   call  the collective call, named in errors
[[nodiscard]] std::vector<std::vector<std::byte>> allgather_in(Team& team, const char* call,
                                                               std::span<const std::byte> mine);

/// As `allgather_in`, for a value; empty for members that have failed or left.
template <class T>
[[nodiscard]] std::vector<std::optional<T>> values_in(Team& team, const char* call, const T& mine) {
  std::vector<std::optional<T>> all;
  for (const auto& bytes : allgather_in(team, call, std::as_bytes(std::span(&mine, 1)))) {
    auto& theirs = all.emplace_back();
    if (bytes.size() == sizeof mine) std::memcpy(static_cast<void*>(&theirs.emplace()), bytes.data(), sizeof mine);
  }
  return all;
}

}  // namespace beeline::detail
