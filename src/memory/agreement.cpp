// SPDX-License-Identifier: Apache-2.0
#include "memory/agreement.hpp"

#include <fmt/format.h>

namespace beeline {

void fail_together(Bootstrap& bootstrap, const Problem& mine, std::int64_t deadline_ns) {
  const std::string message = static_cast<char>(mine.code) + mine.text;
  const auto all = bootstrap.allgather(std::as_bytes(std::span(message)), deadline_ns);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;  // it has failed or left
    const auto code = static_cast<Status>(all[rank].front());
    const std::string text(reinterpret_cast<const char*>(all[rank].data()) + 1, all[rank].size() - 1);
    if (code != Status::ok)
      throw Error(code, fmt::format("rank {} could not make its part: {}", rank, text), bootstrap.rank());
  }
}

}  // namespace beeline
