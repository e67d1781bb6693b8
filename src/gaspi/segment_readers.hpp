// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The threads that use memory of segments. Each thread counts its own uses on a *sheet*, by plain stores; the service
/// thread, which deletes segments, reads all sheets. A use is ordered before the reading of the segment's part by the
/// deleting thread: it makes all other threads pass a memory barrier (membarrier(2)) before it reads the sheets. Where
/// the kernel has no such call, each use has a fence of its own.

#include <array>
#include <atomic>
#include <cstdint>

namespace beeline::gaspi {

/// Ids of segments are 0 to `segment_ids` - 1.
inline constexpr std::uint32_t segment_ids = 255;

class SegmentReaders {
 public:
  /// Uses of each segment by one thread, which alone writes them.
  using Sheet = std::array<std::atomic<std::uint32_t>, segment_ids>;

  /// Before the first use.
  static void prepare();
  /// Counts a use of this thread. Ordered before its later reads. Returns the count, for `leave` by the same thread.
  [[nodiscard]] static std::atomic<std::uint32_t>* enter(std::uint32_t id) {
    std::atomic<std::uint32_t>& count = (own != nullptr ? *own : adopt_sheet())[id];
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (uses_need_fences) [[unlikely]]
      std::atomic_thread_fence(std::memory_order_seq_cst);
    else
      std::atomic_signal_fence(std::memory_order_seq_cst);
    return &count;
  }
  static void leave(std::atomic<std::uint32_t>* count) {
    count->store(count->load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }
  /// Whether a thread uses the segment. Uses that begin later see what the caller has stored before.
  [[nodiscard]] static bool any(std::uint32_t id);

 private:
  /// Gives this thread a sheet until it ends.
  static Sheet& adopt_sheet();

  static inline thread_local Sheet* own __attribute__((tls_model("initial-exec"))) = nullptr;
  static inline bool uses_need_fences = true;
};

}  // namespace beeline::gaspi
