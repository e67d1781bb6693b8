// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which blocks the CPU will use after a kernel, if it uses the same ones each time.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hpe/objects/block_map.hpp"

namespace beeline::hpe::detail {

/// Remembers at which blocks the CPU had faults after a kernel. If at least half of them are those of the time before,
/// the program repeats its accesses, and after the next kernel all of them can be fetched at once. Makes no calls, so
/// that signal handlers may use it.
class RepeatedFaults {
 public:
  ///   blocks  of the object
  ///   most    faults after a kernel; after more the accesses do not count as repeated
  RepeatedFaults(std::size_t blocks, std::size_t most) : now_(blocks), before_(blocks), most_(most) {}

  /// The CPU had a fault at a block. A read and then a write of it count once.
  void note(std::size_t block) {
    std::uint64_t& word = now_.words[block / 64];
    const std::uint64_t bit = std::uint64_t{1} << block % 64;
    if ((word & bit) != 0) return;
    word |= bit;
    ++now_.count;
  }
  /// A kernel gets the object. Launches between which the CPU had no fault count as one.
  void begin_kernel() {
    if (now_.count == 0) return;
    std::size_t again = 0;
    for (std::size_t i = 0; i < now_.words.size(); ++i)
      again += static_cast<std::size_t>(std::popcount(now_.words[i] & before_.words[i]));
    is_repeated_ = now_.count <= most_ && 2 * again >= now_.count && 2 * again >= before_.count;
    std::swap(now_, before_);
    std::fill(now_.words.begin(), now_.words.end(), 0);
    now_.count = 0;
  }
  /// Calls `call(Blocks)` for the blocks to fetch at the first fault after a kernel, neighbouring ones together; not at
  /// later faults, and not if accesses are not repeated.
  template <class Call>
  void for_expected(const Call& call) const {
    if (now_.count != 0 || !is_repeated_) return;
    Blocks run;
    for (std::size_t i = 0; i < before_.words.size(); ++i)
      for (std::uint64_t left = before_.words[i]; left != 0; left &= left - 1) {
        const std::size_t block = i * 64 + static_cast<std::size_t>(std::countr_zero(left));
        if (block != run.end) {
          if (!run.is_empty()) call(run);
          run.first = block;
        }
        run.end = block + 1;
      }
    if (!run.is_empty()) call(run);
  }

 private:
  struct Faults {
    explicit Faults(std::size_t blocks) : words((blocks + 63) / 64) {}
    std::vector<std::uint64_t> words;  ///< a bit for each block of the object
    std::size_t count = 0;
  };
  Faults now_, before_;  ///< since the latest kernel, and between the kernels before it
  const std::size_t most_;
  bool is_repeated_ = false;
};

}  // namespace beeline::hpe::detail
