// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which group of threads does an operation of a given size.

#include <algorithm>
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

/// The smallest group in which each thread moves at most `most_words` words of `word_bytes`, or what the options ask
/// for: 1 thread is a thread, 32 are a warp, more are a block.
[[nodiscard]] inline GroupChoice choose_group(const Session& session, std::uint64_t bytes, unsigned word_bytes,
                                              unsigned most_words) {
  World& world = session.world();
  if (!world.device().is_gpu()) return {GroupKind::host_team, static_cast<unsigned>(world.config().host_threads)};
  const std::uint64_t words = (bytes + word_bytes - 1) / word_bytes;
  unsigned threads = session.options().threads_per_block;
  if (threads == 0 && words <= 1) threads = 1;
  if (threads == 0 && words <= 32u * most_words) threads = 32;
  if (threads == 0) threads = static_cast<unsigned>(std::min<std::uint64_t>((words + 31) / 32 * 32, 1024));
  return {threads == 1 ? GroupKind::thread : threads == 32 ? GroupKind::warp : GroupKind::block, threads};
}

/// Calls `run(group)` with the type of group that the kernel is made for.
template <class Run>
decltype(auto) with_group(GroupKind kind, Run run) {
  if (kind == GroupKind::thread) return run(Thread{});
  if (kind == GroupKind::warp) return run(Warp{});
  return run(Block{});
}

}  // namespace beeline::bench
