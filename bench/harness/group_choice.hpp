// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which groups of threads do an operation of a given size.

#include <cstdint>

#include "beeline/device/group.hpp"
#include "harness/measurement.hpp"

namespace beeline::bench {

enum class GroupKind { thread, warp, block, host_team };

struct GroupChoice {
  GroupKind kind;
  unsigned threads;  ///< of the block on a GPU, of the team on a host rank

  [[nodiscard]] Settings settings() const {
    static constexpr const char* names[] = {"thread", "warp", "block", "host_team"};
    return {{"group", names[static_cast<int>(kind)]},
            {"threads_per_block", std::uint64_t{threads}},
            {"blocks", std::uint64_t{1}}};
  }
};

/// The groups that may be quickest for a message, smallest first: each is measured, and the record says which was. Or
/// the one that the options ask for: 1 thread is a thread, 32 are a warp, more are a block.
///   word_bytes    what one store moves
///   most_threads  that the registers of the kernel allow
[[nodiscard]] std::vector<GroupChoice> candidate_groups(const Bench& bench, std::uint64_t bytes, unsigned word_bytes,
                                                        unsigned most_threads);

/// One thread on a GPU, a team on a host rank.
[[nodiscard]] GroupChoice single_thread(const Bench& bench);

/// Calls `run(group)` with the type of group that the kernel is made for.
template <class Run>
decltype(auto) with_group(GroupKind kind, Run run) {
  if (kind == GroupKind::thread) return run(Thread{});
  if (kind == GroupKind::warp) return run(Warp{});
  return run(Block{});
}

}  // namespace beeline::bench
