// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Queues of commands to this rank's engine, which kernels post to (control/post.hpp, docs/control.md).

#include <memory>
#include <string>
#include <vector>

#include "beeline/control/engine_statistics.hpp"
#include "beeline/core/command.hpp"
#include "beeline/host/team.hpp"

namespace beeline {

class DeviceEngine;
class EngineThreads;

/// What serves command queues (docs/control.md).
enum class EngineKind {
  host,   ///< threads of the host: copy engines move the bytes of GPUs
  device  ///< a thread block of the rank's device: its loads and stores do, and commands stay in the device's memory
};

/// Who serves command queues.
struct CommandQueueOptions {
  EngineKind engine = EngineKind::host;
  /// Of EngineKind::host. 0: the rank's engine; otherwise, 1 to 8: an engine with so many threads, for them alone.
  int engine_threads = 0;
  bool is_timed = false;  ///< whether such an engine keeps the times of its parts (`EngineStatistics::begin_s`)
};

/// Queues of the calling rank, of `command_ring_depth` commands each, and the engine that serves them: that of the
/// host, which the first of a world start (`Config::engine_threads`), or a block of the device for them alone, for
/// which room on the device is kept while they exist: waiting kernels do not get it. On a GPU rank make them while none
/// of its kernels runs.
class CommandQueues {
 public:
  /// Collective, with the same number of queues and kind of engine on all members. A queue takes 21 KiB of the pinned
  /// heap, so that 3,000 fit unless it was chosen, and 2 KiB of the symmetric heap; one that the device serves 24 KiB
  /// of the symmetric heap. Throws invalid_argument for no queues, and for a device engine with threads of the host;
  /// otherwise as `Team::allocate`; unavailable where the engine cannot be; no_resource where what waits on the device
  /// leaves a device engine no room.
  explicit CommandQueues(Team& team, std::uint32_t queues = 1, const CommandQueueOptions& options = {});
  /// Collective. Kernels that post to them must be over; waits until what they have posted is done, up to the deadline.
  ~CommandQueues();
  CommandQueues(const CommandQueues&) = delete;
  CommandQueues& operator=(const CommandQueues&) = delete;

  /// For kernels, by value.
  [[nodiscard]] const CommandChannel& channel() const { return channel_; }
  /// Waits until what has been posted is done, up to the deadline; no kernel may be posting. Throws deadline or
  /// aborted.
  void quiet() const;
  /// Why the engine refused commands: of each queue where it did, the first.
  [[nodiscard]] std::vector<std::string> refusals() const;
  /// What the engine that serves them has done, for all its queues.
  [[nodiscard]] EngineStatistics statistics() const;
  /// Posts that found their queue full.
  [[nodiscard]] std::uint64_t full_posts() const;

 private:
  [[nodiscard]] EngineThreads& engine() const;
  [[nodiscard]] std::uint64_t completed(std::uint32_t queue) const;

  Team& team_;
  std::unique_ptr<EngineThreads> own_engine_;  ///< nullptr: the rank's serves them
  SymmetricArray<CommandRing> rings_;
  SymmetricArray<CommandTickets> tickets_;
  CommandChannel channel_;
  std::unique_ptr<DeviceEngine> device_engine_;  ///< nullptr: the host's serves them
};

}  // namespace beeline
