// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The device engine of command queues (control/service_block.hpp), as the host sees it.

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "beeline/control/engine_statistics.hpp"
#include "beeline/host/team.hpp"
#include "beeline/transport/stream.hpp"
#include "control/command_worker.hpp"
#include "control/refusals.hpp"
#include "control/service_block.hpp"
#include "host/leased_grid.hpp"
#include "memory/memory_users.hpp"

namespace beeline {

class DeviceTriggers;

/// The service block of a rank's queues, and what the host does for it between its leases.
class DeviceEngine {
 public:
  /// Collective. Runs a first lease.
  ///   rings  [queues] in this rank's symmetric heap
  DeviceEngine(Team& team, CommandRing* rings, std::uint32_t queues);
  /// Collective. Ends after the lease that runs.
  ~DeviceEngine();

  /// What posters set that find it asleep.
  [[nodiscard]] std::uint64_t* wanted() const { return grid_->terms().wanted; }
  /// Commands of a queue that are done.
  [[nodiscard]] std::uint64_t completed(std::uint32_t queue) const;
  /// Of each queue where commands were refused, why the first was.
  [[nodiscard]] std::vector<std::string> refusals() const;
  [[nodiscard]] EngineStatistics statistics() const;

  /// Counts the triggers that are posted to its queues, and does what they fire, from now until it ends.
  ///   triggers  outlives it
  void serve_triggers(DeviceTriggers& triggers);
  /// See LeasedGrid.
  void between_leases(const std::function<void()>& change) { grid_->between_leases(change); }
  /// Asks for a lease.
  void want() { grid_->want(); }
  /// A word that the block stores.
  [[nodiscard]] std::uint64_t read(const std::uint64_t& word) const;

 private:
  /// Of the device, that the block takes.
  [[nodiscard]] double share() const;
  void start(Stream& stream, const Lease& lease);
  /// Tells the block where memory is, if that has changed.
  void show_pieces(Stream& stream);
  [[nodiscard]] bool is_reachable(std::span<const std::byte> piece) const;
  void answer_handed();
  /// Why a command that was handed over is refused; nullptr: it is done.
  [[nodiscard]] const char* do_command(const Command& command);
  void refuse(std::uint32_t queue, const Command& command, const char* reason);

  Team& team_;
  const EngineClient client_;
  MappedMemory memory_{client_};
  MemoryUser memory_user_{*client_.memory_users};  ///< of commands that are handed over
  const std::unique_ptr<CommandWorker> worker_;
  Refusals& refusals_;  ///< of the world's device engines
  CommandRing* const rings_;
  const std::uint32_t queues_;
  SymmetricArray<ServedRing> served_;
  SymmetricArray<ReachablePiece> pieces_, shown_;  ///< by the block; the same in host memory
  std::size_t shown_count_ = 0;
  SymmetricArray<HandedCommand> handed_;
  std::atomic<std::uint64_t> handed_bytes_{0};
  std::atomic<DeviceTriggers*> triggers_{nullptr};
  std::optional<LeasedGrid> grid_;
};

}  // namespace beeline
