// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One member is late for a call: it calls when the calls of all others have timed out. Each of these sets a word of
/// its own, which ranks of all kinds can store.

#include <cstdint>

#include "beeline/beeline.hpp"

namespace beeline_test {

/// Blocks until all others have called `tell_latecomer` for this round.
///   waiting  [ranks] signals
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE beeline::Status wait_for_others(const Group& group, const beeline::Context& ctx,
                                                                  const std::uint64_t* waiting, std::uint64_t round) {
  beeline::Status status = beeline::Status::ok;
  for (std::uint32_t peer = 0; peer < ctx.size && status == beeline::Status::ok; ++peer)
    if (peer != ctx.rank)
      status = beeline::wait(group, ctx, &waiting[peer], beeline::Compare::greater_equal, round, peer);
  return status;
}

/// Reports to `late` that this member's call of the round has timed out. Rounds count up from 1.
template <class Group>
BEELINE_HOST_DEVICE beeline::Status tell_latecomer(const Group& group, const beeline::Context& ctx,
                                                   std::uint64_t* waiting, std::uint64_t round, std::uint32_t late) {
  return beeline::signal(group, ctx, &waiting[ctx.rank], round, late);
}

}  // namespace beeline_test
