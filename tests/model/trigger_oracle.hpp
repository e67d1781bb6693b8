// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Triggered operations of libfabric, for comparison.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

namespace beeline_test {

/// Counters of libfabric's `sockets` provider, and writes that are deferred until a counter has reached a threshold:
/// write `name` sets the word of that number in this process. A functional model; its times mean nothing.
class TriggerOracle {
 public:
  /// Throws std::runtime_error with the reason if the provider is missing.
  TriggerOracle(std::size_t counters, std::size_t writes);
  ~TriggerOracle();
  TriggerOracle(const TriggerOracle&) = delete;
  TriggerOracle& operator=(const TriggerOracle&) = delete;

  /// Defers write `name`, once for each name.
  ///   then  the counter to which its completion adds; -1: none
  void defer(std::size_t name, std::size_t counter, std::uint64_t threshold, int then);
  void add(std::size_t counter, std::uint64_t count);
  /// The writes that have arrived since the last call. Waits for `expected` of them, up to `limit`, and then for a
  /// short time for more.
  [[nodiscard]] std::set<std::size_t> arrived(std::size_t expected, std::chrono::milliseconds limit);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace beeline_test
