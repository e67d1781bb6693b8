// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Triggered operations as libfabric has them, for comparison.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

namespace beeline_test {

/// Counters of libfabric's `sockets` provider, and writes that are deferred until a counter has reached a threshold:
/// write `name` puts a word into the place of that number, in this process. A functional model; its times mean nothing.
class TriggerOracle {
 public:
  /// Throws std::runtime_error where the provider is missing, with its reason.
  TriggerOracle(std::size_t counters, std::size_t writes);
  ~TriggerOracle();
  TriggerOracle(const TriggerOracle&) = delete;
  TriggerOracle& operator=(const TriggerOracle&) = delete;

  /// Defers write `name`, once for each name.
  ///   then  the counter that its completion adds to; -1: none
  void defer(std::size_t name, std::size_t counter, std::uint64_t threshold, int then);
  void add(std::size_t counter, std::uint64_t count);
  /// The writes that have arrived since the last call: waits until these are so many, up to `patience`, and then for
  /// more that nobody expects.
  [[nodiscard]] std::set<std::size_t> arrived(std::size_t expected, std::chrono::milliseconds patience);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace beeline_test
