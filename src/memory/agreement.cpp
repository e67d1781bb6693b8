// SPDX-License-Identifier: Apache-2.0
#include "memory/agreement.hpp"

#include <fmt/format.h>

namespace beeline {

namespace {

constexpr char tag[] = {'p', 'a', 'r', 't'};  // tells this step's messages from those of other collective functions

Problem problem_in(std::span<const std::byte> message) {
  require(message.size() > sizeof tag && std::memcmp(message.data(), tag, sizeof tag) == 0, Status::invalid_argument,
          "ranks are in different collective functions");
  const auto* text = reinterpret_cast<const char*>(message.data()) + sizeof tag;
  return {static_cast<Status>(text[0]), std::string(text + 1, message.size() - sizeof tag - 1)};
}

}  // namespace

void fail_together(Bootstrap& bootstrap, const Problem& mine, std::int64_t deadline_ns) {
  const std::string message = std::string(tag, sizeof tag) + static_cast<char>(mine.code) + mine.text;
  const auto all = bootstrap.allgather(std::as_bytes(std::span(message)), deadline_ns);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;  // it has failed or left
    const Problem theirs = problem_in(all[rank]);
    if (theirs.code != Status::ok)
      throw Error(theirs.code, fmt::format("rank {} could not make its part: {}", rank, theirs.text), bootstrap.rank());
  }
}

}  // namespace beeline
