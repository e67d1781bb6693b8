// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Memory with known bytes around an operation's destination, so that any byte written outside of it is found.

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "tests/conformance/rank_test.hpp"

namespace beeline_test {

/// Bytes before and after every destination.
inline constexpr std::size_t guard_bytes = 64;
inline constexpr std::byte guard_value{0xa5};

/// A piece of this rank's memory between guards.
class GuardedArea {
 public:
  /// `memory` has room for `offset + bytes` bytes and two guards.
  GuardedArea(RankTest& test, std::byte* memory, std::size_t offset, std::size_t bytes)
      : test_(test), memory_(memory), offset_(offset), bytes_(bytes) {
    test_.write(memory_, std::vector<std::byte>(total(), guard_value));
  }

  [[nodiscard]] std::byte* data() const { return memory_ + guard_bytes + offset_; }
  [[nodiscard]] std::size_t total() const { return needed(offset_, bytes_); }
  [[nodiscard]] static std::size_t needed(std::size_t offset, std::size_t bytes) {
    return offset + bytes + 2 * guard_bytes;
  }

  /// Throws unless the area contains `expected` between unchanged guards.
  void check(const std::vector<std::byte>& expected, std::string_view what) {
    std::vector<std::byte> image(total(), guard_value);
    std::copy(expected.begin(), expected.end(), image.begin() + static_cast<std::ptrdiff_t>(guard_bytes + offset_));
    check_bytes(image, test_.read(memory_, total()), what);
  }

 private:
  RankTest& test_;
  std::byte* memory_;
  std::size_t offset_, bytes_;
};

}  // namespace beeline_test
