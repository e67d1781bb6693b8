// SPDX-License-Identifier: Apache-2.0
#include "harness/group_choice.hpp"

#include <algorithm>

namespace beeline::bench {

namespace {

GroupChoice host_team(const World& world) {
  return {GroupKind::host_team, static_cast<unsigned>(world.config().host_threads)};
}

}  // namespace

GroupChoice single_thread(const Bench& bench) {
  const World& world = bench.world();
  return world.device().is_gpu() ? GroupChoice{GroupKind::thread, 1} : host_team(world);
}

std::vector<GroupChoice> candidate_groups(const Bench& bench, std::uint64_t bytes, unsigned word_bytes,
                                          unsigned most_threads) {
  if (!bench.world().device().is_gpu()) return {host_team(bench.world())};
  const unsigned asked = bench.options().threads_per_block;
  if (asked != 0) return {{asked == 1 ? GroupKind::thread : asked == 32 ? GroupKind::warp : GroupKind::block, asked}};
  const std::uint64_t words = (bytes + word_bytes - 1) / word_bytes;
  std::vector<GroupChoice> choices;
  if (words <= 2) choices.push_back({GroupKind::thread, 1});
  if (words <= 4 * 32) choices.push_back({GroupKind::warp, 32});
  const std::uint64_t threads = std::min<std::uint64_t>((words + 31) / 32 * 32, most_threads);
  if (threads > 32) choices.push_back({GroupKind::block, static_cast<unsigned>(threads)});
  return choices;
}

}  // namespace beeline::bench
