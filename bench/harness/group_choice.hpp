// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The groups of threads that carry out an operation of a given size.

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

/// The groups that may be fastest for a message, smallest first: each is measured, and recorded with its result. If the
/// options name a number of threads, only that group: 1 thread is a thread, 32 are a warp, more are a block.
///   word_bytes    bytes that one store moves
///   most_threads  threads that the registers of the kernel allow
[[nodiscard]] std::vector<GroupChoice> candidate_groups(const Bench& bench, std::uint64_t bytes, unsigned word_bytes,
                                                        unsigned most_threads);

/// One thread on a GPU, the team on a host rank.
[[nodiscard]] GroupChoice single_thread(const Bench& bench);

/// Calls `run(group)` with the group type for which the kernel is instantiated.
template <class Run>
decltype(auto) with_group(GroupKind kind, Run run) {
  if (kind == GroupKind::thread) return run(Thread{});
  if (kind == GroupKind::warp) return run(Warp{});
  return run(Block{});
}

}  // namespace beeline::bench
