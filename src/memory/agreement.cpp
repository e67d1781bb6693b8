// SPDX-License-Identifier: Apache-2.0
#include "memory/agreement.hpp"

#include <fmt/format.h>

#include <string_view>

namespace beeline {

namespace {

Problem problem_in(std::span<const std::byte> message) {
  const auto* text = reinterpret_cast<const char*>(message.data());
  return {static_cast<Status>(text[0]), std::string(text + 1, message.size() - 1)};
}

/// The text without the name of its status, with which the error of all ranks begins anyway.
std::string_view reason_of(const Problem& problem) {
  const std::string status = fmt::format("{}: ", name(problem.code));
  std::string_view text = problem.text;
  while (text.starts_with(status)) text.remove_prefix(status.size());
  return text;
}

}  // namespace

void fail_together(Bootstrap& bootstrap, const Problem& mine, std::int64_t deadline_ns) {
  const std::string message = static_cast<char>(mine.code) + mine.text;
  const auto all = bootstrap.allgather(std::as_bytes(std::span(message)), deadline_ns);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;  // the rank has failed or left
    const Problem theirs = problem_in(all[rank]);
    if (theirs.code != Status::ok)
      throw Error(theirs.code, fmt::format("rank {} could not make its part: {}", rank, reason_of(theirs)),
                  bootstrap.rank());
  }
}

}  // namespace beeline
