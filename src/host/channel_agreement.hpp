// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What members agree on when they make a channel together.

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "beeline/host/team.hpp"
#include "host/world_implementation.hpp"

namespace beeline::detail {

/// Collective over the team. The least of what its members say, of those that have neither failed nor left.
///   call  that members are in, named in errors
[[nodiscard]] inline unsigned least_of_all(Team& team, const char* call, unsigned mine) {
  unsigned least = mine;
  for (const auto& bytes : team.world().implementation().allgather_in(team, call, std::as_bytes(std::span(&mine, 1)))) {
    unsigned theirs = least;
    if (bytes.size() == sizeof theirs) std::memcpy(&theirs, bytes.data(), sizeof theirs);
    least = std::min(least, theirs);
  }
  return least;
}

/// Collective over the team. Throws invalid_argument on all members alike when one gives other options than the first
/// that has neither failed nor left.
///   call      that members are in, named in errors
///   same      gets two members' options
///   describe  gets that first member and its options, and the one that differs and its options; returns the error's
///             text
template <class Options, class Same, class Describe>
void require_same(Team& team, const char* call, const Options& mine, const Same& same, const Describe& describe) {
  const auto all = team.world().implementation().allgather_in(team, call, std::as_bytes(std::span(&mine, 1)));
  std::optional<Options> first;
  std::size_t first_rank = 0;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].size() != sizeof mine) continue;  // it has failed or left
    Options theirs;
    std::memcpy(&theirs, all[rank].data(), sizeof theirs);
    if (!first) first = theirs, first_rank = rank;
    if (!same(*first, theirs)) throw Error(Status::invalid_argument, describe(first_rank, *first, rank, theirs));
  }
}

}  // namespace beeline::detail
