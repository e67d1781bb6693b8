// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How many blocks a first access makes current.

#include <algorithm>
#include <array>
#include <cstddef>

namespace beeline::hpe::detail {

/// Recognizes accesses in the order of addresses, of several threads at once: each such access doubles the number of
/// blocks, up to a limit.
class FetchAhead {
 public:
  ///   most   blocks at most
  ///   first  blocks of an access that follows no other
  FetchAhead(std::size_t most, std::size_t first) : most_(most), first_(first) {}

  /// Blocks to make current, from `block` on.
  [[nodiscard]] std::size_t blocks_from(std::size_t block) {
    for (Run& run : runs_)
      if (run.length != 0 && run.next == block) return extend(run, block, std::min(run.length * 2, most_));
    Run& oldest = runs_[turn_];
    turn_ = (turn_ + 1) % runs_.size();
    return extend(oldest, block, first_);
  }

 private:
  struct Run {
    std::size_t next = 0, length = 0;
  };
  static std::size_t extend(Run& run, std::size_t block, std::size_t length) {
    run = {block + length, length};
    return length;
  }

  const std::size_t most_, first_;
  std::array<Run, 16> runs_{};
  std::size_t turn_ = 0;
};

}  // namespace beeline::hpe::detail
