// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Random words in a rank's memory, written and looked at by its own device.

#include <cstdint>

#include "harness/bench.hpp"
#include "harness/device_count.hpp"

namespace beeline::bench {

/// Words at `words[0]`, `words[stride]`, ... of this rank.
struct WordRange {
  std::uint64_t* words;
  std::uint64_t count, stride;
};

class WordPattern {
 public:
  /// Collective.
  explicit WordPattern(Bench& bench) : bench_(bench), wrong_(bench) {}

  /// Makes word `i` the `i`-th random word of `seed`.
  void fill(const WordRange& range, std::uint64_t seed);
  /// Whether it still is.
  [[nodiscard]] bool holds(const WordRange& range, std::uint64_t seed);

 private:
  Bench& bench_;
  DeviceCount wrong_;
};

}  // namespace beeline::bench
