// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The heaps of GPU ranks that an engine's threads store into, if the machine maps GPU memory for CPUs.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "beeline/transport/engine.hpp"
#include "memory/gpu_window.hpp"

namespace beeline {

/// Windows on the heaps of a node's ranks, for all threads of a rank's engines.
class GpuWindows {
 public:
  using Window = gpu_memory::Window;

  /// Opens a window on the heap of each GPU rank of the node whose memory this rank has mapped. Opens none if the
  /// rank's own heap, which has the words for its posters, cannot have one.
  explicit GpuWindows(const EngineClient& client);

  /// The window that contains all `bytes` from `address` on; nullptr if there is none.
  [[nodiscard]] const Window* on(const void* address, std::size_t bytes) const {
    for (const auto& window : windows_)
      if (window->seen(address, bytes) != nullptr) return window.get();
    return nullptr;
  }
  /// Whether a window leads to the memory of the rank's own GPU. Stores that arrive there in order become visible in
  /// order.
  [[nodiscard]] bool is_own(const Window& window) const { return window.gpu() == gpu_; }
  /// The window on the rank's own heap.
  [[nodiscard]] const Window& own() const { return *windows_.front(); }
  [[nodiscard]] bool empty() const { return windows_.empty(); }
  /// Why heaps have no window, each reason once; empty if all heaps have one.
  [[nodiscard]] const std::vector<std::string>& reasons() const { return reasons_; }

 private:
  const int gpu_;
  std::vector<std::shared_ptr<const Window>> windows_;  ///< the window on the rank's own heap first
  std::vector<std::string> reasons_;
};

}  // namespace beeline
