// SPDX-License-Identifier: Apache-2.0
#include "runtime/rank_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace beeline::detail {

std::string rank_list(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

std::string without_rank(std::string text, int rank) {
  const std::string named = fmt::format(": rank {}: ", rank);
  if (const std::size_t at = text.find(named); at != std::string::npos) text.replace(at, named.size(), ": ");
  return text;
}

std::string missing_message(double seconds, const std::vector<int>& not_called, const std::vector<int>& not_joined) {
  std::string text = fmt::format("not complete within {} s", seconds);
  if (!not_joined.empty()) text += fmt::format("; {} never joined the world", rank_list(not_joined));
  if (!not_called.empty()) text += fmt::format("; {} joined, but did not make this call", rank_list(not_called));
  return text;
}

std::string left_message(const std::vector<int>& ranks) {
  const std::string who = rank_list(ranks);
  return fmt::format(
      "cannot complete: {0} left the world early, after an error; look for it in the output of {0}, or where the "
      "program catches it",
      who);
}

std::string missed_message(const std::vector<int>& ranks) {
  return fmt::format("cannot complete: {} ended before {} joined the world", rank_list(ranks),
                     ranks.size() == 1 ? "it" : "they");
}

std::string asks_message(int rank) {
  return fmt::format("rank {} asks who is left of the world: the others are to ask too", rank);
}

std::string unanswered_message(int rank, int asked_by, double seconds) {
  return fmt::format("rank {} did not answer rank {}'s question who is left within {} s", rank, asked_by, seconds);
}

}  // namespace beeline::detail
