// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The stores of a GPU rank's engine thread into the memory of GPUs (control/gpu_windows.hpp).

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "control/gpu_windows.hpp"

namespace beeline {

/// The CPU's stores to GPU memory become visible late, and in any order unless there is a fence between them. So a
/// ring's stores are over only when `settle` has flushed the stores of all rings: it loads a word of each other GPU,
/// and the load returns after the stores. Used by one thread, except for `count`.
class WindowStores {
 public:
  ///   windows  nullptr: none
  explicit WindowStores(const GpuWindows* windows) : windows_(windows) {}

  /// The next stores belong to another ring: see CommandWorker::begin_ring.
  void begin_ring(bool* own_is_under_way) {
    own_is_under_way_ = own_is_under_way;
    last_ = nullptr;
    ring_has_stored_ = false;
  }
  /// The address at which the CPU stores bytes for `remote`; nullptr if the CPU does not reach it. Each store of a ring
  /// becomes visible after the ring's earlier stores.
  [[nodiscard]] std::byte* place(std::byte* remote, std::size_t bytes, bool is_host_memory) {
    const Window* const window = is_host_memory || windows_ == nullptr ? nullptr : windows_->on(remote, bytes);
    if (!is_host_memory && window == nullptr) return nullptr;
    if (ring_has_stored_ && (window != nullptr || last_ != nullptr)) gpu_memory::fence_windows();
    const bool is_own = window != nullptr && windows_->is_own(*window);
    settle_before(window, is_own);
    ring_has_stored_ = true;
    if (is_host_memory) return remote;
    if (is_own) *own_is_under_way_ = true;
    last_ = window;
    count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (std::find(stored_.begin(), stored_.end(), window) == stored_.end()) stored_.push_back(window);
    return window->seen(remote, bytes);
  }
  /// Whether the ring has stores to GPU memory.
  [[nodiscard]] bool ring_has_gpu_stores() const { return last_ != nullptr; }
  /// Waits until the CPU's stores are in the memory of other GPUs, and so visible before its later stores. Stores to
  /// the rank's own GPU become visible there in order.
  void settle() {
    if (stored_.empty()) return;
    gpu_memory::fence_windows();
    for (const Window* window : stored_)
      if (!windows_->is_own(*window)) window->settle();
    stored_.clear();
  }

  /// Records a count for posters, which `publish_counts` stores.
  void mirror_later(std::uint64_t* mirror, std::uint64_t done) {
    if (mirror == nullptr || windows_ == nullptr) return;
    if (const Window* const window = windows_->on(mirror, sizeof *mirror))
      mirrors_.emplace_back(reinterpret_cast<std::uint64_t*>(window->seen(mirror, sizeof *mirror)), done);
  }
  void publish_counts() {
    if (mirrors_.empty()) return;
    gpu_memory::fence_windows();  // after the stores that the counts cover
    for (const auto& [word, done] : mirrors_) *static_cast<volatile std::uint64_t*>(word) = done;
    gpu_memory::fence_windows();
    mirrors_.clear();
  }
  /// Number of stores into GPU memory. Any thread may call it.
  [[nodiscard]] std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  using Window = gpu_memory::Window;

  /// Called before a store. If the ring's next store goes to other memory than its last one, waits until the earlier
  /// stores are in the memory of the GPUs. Stores to the rank's own GPU may be of an earlier round, since rounds do not
  /// end with a wait for such stores.
  ///   next  nullptr: host memory
  void settle_before(const Window* next, bool is_own) {
    if (last_ != nullptr && last_ != next && !windows_->is_own(*last_)) settle();
    if (is_own || own_is_under_way_ == nullptr || !*own_is_under_way_) return;
    gpu_memory::fence_windows();
    windows_->own().settle();
    *own_is_under_way_ = false;
  }

  const GpuWindows* const windows_;
  std::vector<const Window*> stored_;  ///< windows with stores that may be in flight
  /// Words that `publish_counts` stores, at the CPU's addresses.
  std::vector<std::pair<std::uint64_t*, std::uint64_t>> mirrors_;
  bool* own_is_under_way_ = nullptr;  ///< of this ring; nullptr: there are no windows
  const Window* last_ = nullptr;      ///< window of the ring's last store; nullptr: none, or host memory
  bool ring_has_stored_ = false;      ///< whether the CPU has stored for this ring, also to host memory
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace beeline
