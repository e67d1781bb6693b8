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

class EngineThreads;

/// Who serves command queues.
struct CommandQueueOptions {
  int engine_threads = 0;  ///< 0: the rank's engine; otherwise, 1 to 8: an engine with so many threads, for them alone
  bool is_timed = false;   ///< whether such an engine keeps the times of its parts (`EngineStatistics::begin_s`)
};

/// Queues of the calling rank, of `command_ring_depth` commands each, and its engine, which serves them by threads of
/// the host (`Config::engine_threads`). The first of a world starts the engine. On a GPU rank make them while none of
/// its kernels runs.
class CommandQueues {
 public:
  /// Collective, with the same number of queues on all members. A queue takes 21 KiB of the pinned heap, so that
  /// 3,000 fit unless it was chosen, and 2 KiB of the symmetric heap. Throws invalid_argument for no queues, otherwise
  /// as `Team::allocate`; unavailable where the engine cannot be.
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
  Team& team_;
  std::unique_ptr<EngineThreads> own_engine_;  ///< nullptr: the rank's serves them
  SymmetricArray<CommandRing> rings_;
  SymmetricArray<CommandTickets> tickets_;
  CommandChannel channel_;
};

}  // namespace beeline
