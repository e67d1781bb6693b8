// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Command queues: kernels post to them, and this rank's engine serves them (control/post.hpp, docs/control.md).

#include <memory>
#include <string>
#include <vector>

#include "beeline/control/engine_statistics.hpp"
#include "beeline/core/command.hpp"
#include "beeline/host/team.hpp"

namespace beeline {

class DeviceEngine;
class CommandSource;
class HostEngine;

/// Which kind of engine serves command queues (docs/control.md).
enum class EngineKind {
  host,   ///< threads of the host; copy engines move the bytes of GPUs
  device  ///< a thread block of the rank's device, by loads and stores; commands stay in device memory
};

/// Options of the engine that serves command queues.
struct CommandQueueOptions {
  EngineKind engine = EngineKind::host;
  /// For EngineKind::host. 0: the rank's engine serves the queues; 1 to 8: a separate engine with this number of
  /// threads serves them.
  int engine_threads = 0;
  bool is_timed = false;  ///< whether the threads of a separate engine measure their times
                          ///< (`EngineStatistics::begin_s`)
};

/// Command queues of the calling rank, with `command_ring_depth` commands each, and the engine that serves them. The
/// engine is the rank's host engine, which starts with the first queues of a world (`Config::engine_threads`), or a
/// block of the device that serves these queues only. Room for this block is reserved on the device while the queues
/// exist, so waiting kernels cannot use that room. On a GPU rank, make the queues while none of its kernels runs.
class CommandQueues {
 public:
  /// Collective, with the same number of queues and kind of engine on all members. A queue of a host engine takes 21
  /// KiB of the pinned heap, whose default size has room for 3,000 queues, and 2 KiB of the symmetric heap. A queue of
  /// a device engine takes 24 KiB of the symmetric heap, and 4 KiB of the pinned heap; in a world on several nodes 25.
  /// Throws invalid_argument for 0 queues or for a device engine with `engine_threads`; unavailable if the rank cannot
  /// have such an engine; no_resource if waiting kernels leave no room for a device engine; otherwise see
  /// `Team::allocate`.
  explicit CommandQueues(Team& team, std::uint32_t queues = 1, const CommandQueueOptions& options = {});
  /// Collective. Kernels that post to the queues must have ended. Waits, up to the deadline, until all posted commands
  /// are done.
  ~CommandQueues();
  CommandQueues(const CommandQueues&) = delete;
  CommandQueues& operator=(const CommandQueues&) = delete;

  /// The queues for kernels; pass them by value.
  [[nodiscard]] const CommandQueuesView& channel() const { return channel_; }
  /// Waits, up to the deadline, until all posted commands are done; no kernel may be posting. Throws deadline or
  /// aborted.
  void quiet() const;
  /// Why the engine refused commands: the first refusal of each queue that has any.
  [[nodiscard]] std::vector<std::string> refusals() const;
  /// Statistics of the engine that serves these queues, over all queues that it serves.
  [[nodiscard]] EngineStatistics statistics() const;
  /// Number of posts that found their queue full.
  [[nodiscard]] std::uint64_t full_posts() const;

 private:
  friend class Triggers;
  [[nodiscard]] HostEngine& engine() const;
  /// The queues as sources of commands for a host engine.
  [[nodiscard]] const std::vector<std::unique_ptr<CommandSource>>& sources() const { return sources_; }
  [[nodiscard]] std::uint64_t completed(std::uint32_t queue) const;

  Team& team_;
  const std::shared_ptr<const detail::TeamLife> life_;
  std::unique_ptr<HostEngine> own_engine_;  ///< nullptr: the rank's host engine or a device engine serves the queues
  SymmetricArray<CommandRing> rings_;
  SymmetricArray<CommandTickets> tickets_;
  CommandQueuesView channel_;
  std::vector<std::unique_ptr<CommandSource>> sources_;  ///< [queues] for a host engine; empty for a device engine
  std::unique_ptr<DeviceEngine> device_engine_;          ///< nullptr: a host engine serves the queues
};

}  // namespace beeline
