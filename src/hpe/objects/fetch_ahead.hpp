// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How many blocks a first access makes current.

#include <algorithm>
#include <array>
#include <cstddef>

namespace beeline::hpe::detail {

/// The blocks `first`, `first + step`, `first + 2 step`, ...: `count` of them, of which some may lie beyond the object.
struct SteppedBlocks {
  std::size_t first = 0, step = 1;  ///< a step back wraps around, as unsigned numbers do
  std::size_t count = 1;
  [[nodiscard]] std::size_t operator[](std::size_t index) const { return first + index * step; }
};

/// Recognizes accesses at equal distances, such as those in the order of addresses or to a column of a matrix, of
/// several threads at once: each such access doubles the number of blocks, up to a limit. Makes no calls, so that
/// signal handlers may use it.
class FetchAhead {
 public:
  ///   most   blocks at most
  ///   first  blocks of an access that follows no other
  FetchAhead(std::size_t most, std::size_t first) : most_(most), first_(first) {}

  /// A kernel gets the object: accesses before it and after it are not at equal distances.
  void begin_kernel() { lone_count_ = 0; }

  /// Blocks to make current at an access to `block`, which is the first of them.
  [[nodiscard]] SteppedBlocks blocks_from(std::size_t block) {
    for (Run& run : runs_)
      if (run.length != 0 && run.next == block) return extend(run, {block, run.step, std::min(run.length * 2, most_)});
    const std::size_t step = step_to(block);
    lone_[lone_count_++ % lone_.size()] = block;
    Run& oldest = runs_[turn_];
    turn_ = (turn_ + 1) % runs_.size();
    if (step != 0) return extend(oldest, {block, step, std::min<std::size_t>(2, most_)});
    return extend(oldest, {block, 1, first_});
  }

 private:
  struct Run {
    std::size_t next = 0, step = 1, length = 0;
  };
  static SteppedBlocks extend(Run& run, const SteppedBlocks& blocks) {
    run = {blocks[blocks.count], blocks.step, blocks.count};
    return blocks;
  }
  /// The distance at which `block` follows a lone access, and this one an earlier one, with as many accesses of other
  /// threads in between; 0: there is none.
  [[nodiscard]] std::size_t step_to(std::size_t block) const {
    for (std::size_t age = 1; 2 * age <= std::min(lone_count_, lone_.size()); ++age) {
      const std::size_t step = block - lone(age);
      if (step != 0 && lone(2 * age) == block - 2 * step) return step;
    }
    return 0;
  }
  /// The latest lone access has the age 1.
  [[nodiscard]] std::size_t lone(std::size_t age) const { return lone_[(lone_count_ - age) % lone_.size()]; }

  const std::size_t most_, first_;
  std::array<Run, 16> runs_{};
  std::size_t turn_ = 0;
  std::array<std::size_t, 8> lone_{};  ///< blocks of the latest accesses since a kernel that continued no run
  std::size_t lone_count_ = 0;
};

}  // namespace beeline::hpe::detail
