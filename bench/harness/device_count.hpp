// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A counter in device memory that kernels of this rank increment.

#include <cstdint>

#include "beeline/device/wait.hpp"
#include "beeline/host/world.hpp"
#include "harness/bench.hpp"

namespace beeline::bench {

class DeviceCount {
 public:
  /// Collective.
  explicit DeviceCount(Bench& bench) : world_(bench.world()), word_(world_, 1) {}

  /// The final count, starting from 0, of the kernels that `start(word)` enqueues on the default stream.
  template <class Start>
  [[nodiscard]] std::uint64_t after(Start start) {
    std::uint64_t count = 0;
    world_.copy(word_.data(), &count, sizeof count);
    start(word_.data());
    world_.synchronize();
    world_.copy(&count, word_.data(), sizeof count);
    return count;
  }

 private:
  World& world_;
  SymmetricArray<std::uint64_t> word_;
};

/// Adds `found`, the result of one thread, to the count.
BEELINE_HOST_DEVICE inline void add_to(std::uint64_t* count, std::uint64_t found) {
  if (found != 0) detail::SystemAtomic<std::uint64_t>(*count).fetch_add(found, std::memory_order_relaxed);
}

}  // namespace beeline::bench
