// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Random choices that are the same on every rank of a test, and data that any rank can compute.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace beeline_test {

/// The run's seed: BEELINE_TEST_SEED or a new one; printed at the first call.
[[nodiscard]] std::uint64_t seed();

/// Scrambles `z`: the result shows nothing of it.
[[nodiscard]] std::uint64_t mix(std::uint64_t z);

/// A sequence of choices that depends only on the seed and a label.
class Random {
 public:
  explicit Random(std::string_view label);

  [[nodiscard]] std::uint64_t next();
  /// 0 to `end` - 1.
  [[nodiscard]] std::size_t below(std::size_t end) { return static_cast<std::size_t>(next() % end); }
  [[nodiscard]] int below(int end) { return static_cast<int>(below(static_cast<std::size_t>(end))); }
  [[nodiscard]] bool coin() { return below(std::size_t{2}) == 0; }
  /// A message size up to `most`: often tiny, a round number or one off.
  [[nodiscard]] std::size_t message_bytes(std::size_t most);
  /// An offset below 512, one time in three a multiple of 16.
  [[nodiscard]] std::size_t offset();

 private:
  std::uint64_t state_;
};

/// Byte `index` of the data named `key`.
[[nodiscard]] std::byte pattern_byte(std::uint64_t key, std::size_t index);
void fill_pattern(std::byte* to, std::uint64_t key, std::size_t bytes);
/// The first `bytes` bytes of the data named `key`.
[[nodiscard]] std::vector<std::byte> pattern(std::uint64_t key, std::size_t bytes);

/// Throws a CheckFailure naming the first byte in which the two differ.
void check_bytes(const std::vector<std::byte>& expected, const std::vector<std::byte>& observed, std::string_view what);

}  // namespace beeline_test
