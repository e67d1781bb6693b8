// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// State of a rank for launches of its kernels.

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "host/world/areas.hpp"
#include "host/world/membership.hpp"
#include "host/world/own_process.hpp"

namespace beeline {

/// Names of kernels, published to the other ranks, and this rank's part of the cores. Thread-safe.
class Launches {
 public:
  /// Publishes which cores this process may run on. All references outlive this object.
  Launches(const Membership& membership, const Areas& areas, const OwnProcess& process);
  /// Divides the cores of this node among its ranks; all of them must have published their cores.
  void count_cores();

  /// Number of cores that this process may run on, less the parts of other host ranks on the same cores; at least one.
  [[nodiscard]] unsigned cores() const { return cores_; }
  /// Throws invalid_argument in a fork of the process that made the world.
  void require_own_process() const { process_.require(); }
  /// Whether the name of kernel `number` was published. True for 0, which has no name.
  [[nodiscard]] bool is_named(std::uint16_t number) const {
    return number == 0 || named_[number - 1u].load(std::memory_order_acquire);
  }
  /// Publishes the name of kernel `number`, before the kernel can fail. A name that is too long is truncated.
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
