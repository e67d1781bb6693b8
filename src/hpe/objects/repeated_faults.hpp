// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which blocks the CPU will use after a kernel, if it uses the same ones each time.

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace beeline::hpe::detail {

/// Remembers at which blocks the CPU had faults after a kernel. If at least half of them are those of the time before,
/// the program repeats its accesses, and after the next kernel all of them can be fetched at once. Makes no calls, so
/// that signal handlers may use it.
class RepeatedFaults {
 public:
  ///   most  blocks to remember; after more faults than these the accesses do not count as repeated
  explicit RepeatedFaults(std::size_t most) : most_(std::min(most, now_.blocks.size())) {}

  /// The CPU had a fault at a block. A read and then a write of it count once.
  void note(std::size_t block) {
    if (now_.has(block)) return;
    if (now_.count == most_)
      is_full_ = true;
    else
      now_.blocks[now_.count++] = block;
  }
  /// A kernel gets the object. Launches between which the CPU had no fault count as one.
  void begin_kernel() {
    if (now_.count == 0) return;
    const auto again = static_cast<std::size_t>(
        std::count_if(now_.begin(), now_.end(), [&](std::size_t block) { return before_.has(block); }));
    is_repeated_ = !is_full_ && 2 * again >= now_.count && 2 * again >= before_.count;
    before_ = now_;
    now_.count = 0;
    is_full_ = false;
  }
  /// The blocks to fetch at the first fault after a kernel; empty at later ones, and if accesses are not repeated.
  [[nodiscard]] std::span<const std::size_t> expected() const {
    return now_.count == 0 && is_repeated_ ? std::span(before_.blocks).first(before_.count)
                                           : std::span<const std::size_t>();
  }

 private:
  struct Faults {
    std::array<std::size_t, 128> blocks{};
    std::size_t count = 0;
    [[nodiscard]] const std::size_t* begin() const { return blocks.data(); }
    [[nodiscard]] const std::size_t* end() const { return blocks.data() + count; }
    [[nodiscard]] bool has(std::size_t block) const { return std::find(begin(), end(), block) != end(); }
  };
  Faults now_, before_;  ///< since the latest kernel, and between the kernels before it
  const std::size_t most_;
  bool is_full_ = false, is_repeated_ = false;
};

}  // namespace beeline::hpe::detail
