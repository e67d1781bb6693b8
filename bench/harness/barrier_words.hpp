// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Checks that a barrier lets no rank leave early: every rank stores a random word at every other rank, enters the
/// barrier, and checks the words.

#include "beeline/device/put_get.hpp"
#include "harness/device_count.hpp"
#include "harness/random.hpp"

namespace beeline::bench {

/// Stores this rank's word of `round` at `words[rank]` of every rank. All threads of `group` call it.
template <class Group>
BEELINE_HOST_DEVICE void store_everywhere(const Group& group, const Context& ctx, std::uint64_t* words,
                                          std::uint64_t seed, std::uint64_t round) {
  for (std::uint32_t peer = group.thread_rank(); peer < ctx.size; peer += group.size())
    static_cast<void>(put_value(ctx, &words[ctx.rank], random_word(seed, round * max_ranks + ctx.rank), peer));
}

/// Counts the ranks whose word of `round` has not arrived. The last thread of the group checks the first rank: that
/// tests that the barrier made the whole block wait.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t count_absent(const Group& group, const Context& ctx,
                                                             const std::uint64_t* words, std::uint64_t seed,
                                                             std::uint64_t round) {
  std::uint64_t absent = 0;
  for (std::uint32_t from = group.size() - 1 - group.thread_rank(); from < ctx.size; from += group.size())
    if (load_value(&words[from]) != random_word(seed, round * max_ranks + from)) ++absent;
  return absent;
}

}  // namespace beeline::bench
