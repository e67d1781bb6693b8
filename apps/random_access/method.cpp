// SPDX-License-Identifier: Apache-2.0
#include "method.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rounds.hpp"
#include "task.hpp"

namespace random_access {

const std::vector<MethodInfo>& methods() {
  static const std::vector<MethodInfo> all{
      {{"mpi", "the baseline: the CPU makes the numbers, and MPI exchanges them", {}, why_no_mpi}, make_mpi},
      bare(),
      atomics(),
      mailboxes(),
      put(),
      task()};
  return all;
}

std::string why_no_stores(const beeline::Config& config) {
  return config.split_nodes > 1 ? "its ranks load from and store to each other's memory, and some are on other nodes"
                                : "";
}

std::string why_too_many(const beeline::Config& config) {
  return config.size <= most_exchanging_ranks
             ? ""
             : fmt::format("its ranks have buffers for each other: at most {} ranks", most_exchanging_ranks);
}

std::size_t buffer_bytes(int ranks, bool gpus) {
  constexpr std::size_t box = box_words * sizeof(std::uint64_t);
  const std::size_t boxes = 4 * (gpus ? lag_on_gpus : lag_on_hosts);  // one half to receive, the other to send
  const auto peers = static_cast<std::size_t>(std::min(ranks, most_exchanging_ranks));
  return std::max(boxes * box * peers * (gpus ? most_blocks : 1), task_bytes(ranks, gpus));
}

std::size_t pinned_bytes(int ranks) { return 3 * box_words * sizeof(std::uint64_t) * static_cast<std::size_t>(ranks); }

}  // namespace random_access
