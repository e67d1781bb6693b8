// SPDX-License-Identifier: Apache-2.0
#include "runtime/rank_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace beeline::detail {

std::string rank_list(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

std::string missing_message(double seconds, const std::vector<int>& not_called, const std::vector<int>& not_joined) {
  std::string text = fmt::format("allgather not complete within {} s", seconds);
  if (!not_joined.empty()) text += fmt::format("; {} never joined the world", rank_list(not_joined));
  if (!not_called.empty()) text += fmt::format("; {} joined, but did not call", rank_list(not_called));
  return text;
}

std::string left_message(const std::vector<int>& ranks) {
  return fmt::format("allgather cannot complete: {} left the world", rank_list(ranks));
}

}  // namespace beeline::detail
