// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How far the CPU may run ahead of its device.

#include <cstdint>
#include <memory>

#include "beeline/host/world.hpp"

namespace apps {

/// Bounds how far a stream is enqueued ahead: a full queue would block the driver, and with it every rank that shares
/// the GPU.
class LaunchWindow {
 public:
  /// Two batches are queued at most. A batch is `batch` calls of `advance`, which may enqueue 500 operations
  /// altogether.
  LaunchWindow(beeline::World& world, beeline::Stream& stream, std::uint32_t batch);
  /// Bounds the default stream, for iterations of a few kernels each.
  explicit LaunchWindow(beeline::World& world) : LaunchWindow(world, world.stream(), 64) {}
  /// Called after each iteration's work. Throws like `World::synchronize`.
  void advance();

 private:
  beeline::World& world_;
  beeline::Stream& stream_;
  const std::uint32_t batch_;
  std::unique_ptr<beeline::Event> events_[2];
  std::uint32_t iterations_ = 0;
};

}  // namespace apps
