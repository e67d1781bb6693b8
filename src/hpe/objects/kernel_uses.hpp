// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Work on streams that uses an object.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "hpe/objects/block_map.hpp"
#include "hpe/objects/holding_threads.hpp"
#include "hpe/stream_state.hpp"

namespace beeline::hpe::detail {

/// Blocks that a host device's stream was asked to copy. It skips the copies after a failure of earlier work, and the
/// host's blocks are then still the current ones.
struct SentBlocks {
  std::shared_ptr<std::atomic<bool>> are_there;  ///< set by the stream, behind the copies
  std::vector<std::size_t> blocks;
};

/// The latest work of one stream on an object.
struct KernelUse {
  StreamState* stream;   ///< may have ended
  const void* identity;  ///< of the stream; a later stream may have the same one if this one has ended without work
  DeviceState* device;
  std::unique_ptr<Event> reached;  ///< the end of the work
  HoldingThreads launchers{};      ///< of launches that are not released: `reached` does not cover their work yet
  bool is_pending = false;
  bool writes = false;             ///< whether any work since the use was last over writes
  bool has_sent = false;           ///< whether that work includes copies to the device
  std::vector<SentBlocks> sent{};  ///< since the work was last over

  [[nodiscard]] bool is_of(const StreamState& other) const {
    return identity == other.identity() && device == &other.device();
  }
};

/// Why a thread is refused what would wait for the end of an access that it has open itself.
constexpr const char* own_device_access = "the thread's own DeviceAccess to it is open: end that access first";
constexpr const char* own_host_access = "the thread's own HostAccess to it is open: end that access first";

class KernelUses {
 public:
  /// The entry of a stream, made at its first use. Ends other references to entries.
  [[nodiscard]] KernelUse& of(StreamState& stream) {
    for (KernelUse& use : uses_)
      if (use.is_of(stream)) {
        use.stream = &stream;
        return use;
      }
    // Streams may be gone whose work is over.
    std::erase_if(uses_, [](const KernelUse& use) { return use.launchers.empty() && !use.is_pending; });
    uses_.push_back({.stream = &stream,
                     .identity = stream.identity(),
                     .device = &stream.device(),
                     .reached = stream.own().make_event()});
    return uses_.back();
  }
  [[nodiscard]] std::vector<KernelUse>& all() { return uses_; }
  /// Between a launch's acquisition and its release.
  static void begin_launch(KernelUse& use, bool writes) {
    use.launchers.add(::gettid());
    use.writes = use.writes || writes;
  }
  static void end_launch(KernelUse& use) {
    use.launchers.remove(::gettid());
    use.is_pending = true;
  }

  /// Whether an access of the thread would wait for what only the thread itself can end.
  [[nodiscard]] bool are_held_by(pid_t thread) const {
    return std::any_of(uses_.begin(), uses_.end(),
                       [&](const KernelUse& use) { return use.launchers.are_all_of(thread); });
  }

  /// Whether the end of some work is not known yet.
  [[nodiscard]] bool are_pending() const {
    return std::any_of(uses_.begin(), uses_.end(),
                       [](const KernelUse& use) { return use.is_pending || !use.launchers.empty(); });
  }

  /// Whether all work has ended. Blocks that were not sent return to the host. Throws unavailable if a device has
  /// failed.
  [[nodiscard]] bool are_over(BlockMap& blocks) {
    for (KernelUse& use : uses_)
      if (!is_over(use, blocks)) return false;
    return true;
  }
  [[nodiscard]] static bool is_over(KernelUse& use, BlockMap& blocks) {
    if (!use.launchers.empty()) return false;
    if (!use.is_pending) return true;
    use.device->require_working();
    if (!use.reached->done()) return false;
    use.is_pending = use.has_sent = use.writes = false;
    for (const SentBlocks& sent : use.sent)
      if (!sent.are_there->load(std::memory_order_acquire))
        for (const std::size_t block : sent.blocks) blocks.set_host_alone(block);
    use.sent.clear();
    return true;
  }

 private:
  std::vector<KernelUse> uses_;
};

}  // namespace beeline::hpe::detail
