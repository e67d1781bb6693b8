// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Agreement of the members on a channel's options when they make it together.

#include <fmt/format.h>

#include <algorithm>

#include "beeline/host/world.hpp"
#include "host/world/exchange.hpp"

namespace beeline::detail {

/// Collective over the team. Returns the smallest value of the members that have neither failed nor left.
///   call  the call that members are in, named in errors
[[nodiscard]] inline unsigned least_of_all(Team& team, const char* call, unsigned mine) {
  unsigned least = mine;
  for (const auto& theirs : values_in(team, call, mine)) least = std::min(least, theirs.value_or(least));
  return least;
}

/// Whether a rank of the world runs on CPU threads.
[[nodiscard]] inline bool any_host_rank(const World& world) { return world.mixed() || !world.device().is_gpu(); }

/// Collective over the team. Throws invalid_argument on every member if any member gives other options than the first
/// member that has neither failed nor left.
///   call      the call that members are in, named in errors
///   describe  called with the first member, its options, the member that differs and its options; returns the error's
///             text
template <class Options, class Describe>
void require_same(Team& team, const char* call, const Options& mine, const Describe& describe) {
  const auto all = values_in(team, call, mine);
  const auto first = std::find_if(all.begin(), all.end(), [](const auto& theirs) { return theirs.has_value(); });
  for (auto other = first; other != all.end(); ++other)
    if (*other && !(**other == **first))
      throw Error(Status::invalid_argument, describe(first - all.begin(), **first, other - all.begin(), **other));
}

/// As `require_same`, with an error that does not name the single options.
///   what  purpose of the channel, named in errors
template <class Options>
void require_same_options(Team& team, const char* call, const char* what, const Options& mine) {
  require_same(team, call, mine, [what](auto first, const Options&, auto other, const Options&) {
    return fmt::format("ranks {} and {} give different options for {}", first, other, what);
  });
}

}  // namespace beeline::detail
