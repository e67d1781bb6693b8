// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What launches of a rank's kernels need.

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "host/world/areas.hpp"
#include "host/world/membership.hpp"
#include "host/world/own_process.hpp"

namespace beeline {

/// Names of kernels, which are published to the other ranks, and this rank's part of the cores. Thread-safe.
class Launches {
 public:
  /// Publishes which cores this process may run on. All references outlive it.
  Launches(const Membership& membership, const Areas& areas, const OwnProcess& process);
  /// Shares out the cores of this node, which all its ranks have published.
  void count_cores();

  /// Cores that this process may run on, less what other host ranks there have of them; at least one.
  [[nodiscard]] unsigned cores() const { return cores_; }
  /// Throws invalid_argument in a fork of the process that made the world.
  void require_own_process() const { process_.require(); }
  /// Whether the others know the name of kernel `number`, or never will: 0.
  [[nodiscard]] bool is_named(std::uint16_t number) const {
    return number == 0 || named_[number - 1u].load(std::memory_order_acquire);
  }
  /// Shows its name, before it can fail; a name that is too long is cut.
  void name(std::uint16_t number, const std::string& text);

 private:
  const Membership& membership_;
  const Areas& areas_;
  const OwnProcess& process_;
  unsigned cores_ = 1;
  std::mutex mutex_;
  std::array<std::atomic<bool>, max_named_kernels> named_{};
};

}  // namespace beeline
