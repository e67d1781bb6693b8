// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The threads that use memory of segments. Each thread counts its own uses on a *sheet*, by plain stores; the service
/// thread, which deletes segments, reads all sheets after it has removed the part from the table, and waits until it
/// has seen each sheet without uses once: a use that begins later finds no part. It makes all other threads pass a
/// memory barrier (membarrier(2)) before it reads the sheets, so that it sees all uses that may have found the part.
/// Where the kernel has no such call, each use has a fence of its own.

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

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

  /// The uses of a segment that began before the first call of `have_ended`. Later ones see what the caller has stored
  /// before that call. Threads that use the segment again and again do not hold it up.
  class Earlier {
   public:
    explicit Earlier(std::uint32_t id) : id_(id) {}
    [[nodiscard]] bool have_ended();

   private:
    const std::uint32_t id_;
    bool is_listed_ = false;
    std::vector<const Sheet*> in_use_;  ///< that were not seen without a use yet
  };

 private:
  /// Gives this thread a sheet until it ends.
  static Sheet& adopt_sheet();

  static inline thread_local Sheet* own __attribute__((tls_model("initial-exec"))) = nullptr;
  static inline bool uses_need_fences = true;
};

}  // namespace beeline::gaspi
