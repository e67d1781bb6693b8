// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The heaps of GPU ranks that an engine's threads store into by themselves, where the machine maps them for CPUs.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "beeline/transport/engine.hpp"
#include "memory/gpu_window.hpp"

namespace beeline {

/// Windows on the heaps of the ranks of a node, for all threads of a rank's engines.
class GpuWindows {
 public:
  using Window = gpu_memory::Window;

  /// Opens a window on the heap of each GPU rank of the node whose memory this rank has mapped. Without one on the
  /// rank's own there are none, since the words that tell its posters lie there.
  explicit GpuWindows(const EngineClient& client);

  /// The window in which all `bytes` from an address on lie; nullptr: none.
  [[nodiscard]] const Window* on(const void* address, std::size_t bytes) const {
    for (const auto& window : windows_)
      if (window->seen(address, bytes) != nullptr) return window.get();
    return nullptr;
  }
  /// Whether it leads to the memory of the rank's own GPU. What comes there in order is seen in order.
  [[nodiscard]] bool is_own(const Window& window) const { return window.gpu() == gpu_; }
  /// That on the rank's own heap.
  [[nodiscard]] const Window& own() const { return *windows_.front(); }
  [[nodiscard]] bool empty() const { return windows_.empty(); }
  /// Why there is none on this or that heap, once for each reason; empty: there are all.
  [[nodiscard]] const std::vector<std::string>& reasons() const { return reasons_; }

 private:
  const int gpu_;
  std::vector<std::shared_ptr<const Window>> windows_;  ///< that of the rank's own heap first
  std::vector<std::string> reasons_;
};

}  // namespace beeline
