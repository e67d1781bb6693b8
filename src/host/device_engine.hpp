// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The device engine of command queues (control/service_block.hpp), as the host sees it.

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "beeline/control/engine_statistics.hpp"
#include "beeline/host/team.hpp"
#include "beeline/transport/stream.hpp"
#include "control/command_worker.hpp"
#include "control/engine_thread.hpp"
#include "control/service_block.hpp"

namespace beeline {

/// Starts the service block of a rank's queues for as long as they have commands, and does between its leases what the
/// block hands over. Its block's room on the device is booked while it lives.
class DeviceEngine {
 public:
  /// Collective. Runs a first lease.
  ///   rings, tickets  [queues] in this rank's symmetric heap
  DeviceEngine(Team& team, CommandRing* rings, CommandTickets* tickets, std::uint32_t queues);
  /// Collective. Ends after the lease that runs.
  ~DeviceEngine();
  DeviceEngine(const DeviceEngine&) = delete;
  DeviceEngine& operator=(const DeviceEngine&) = delete;

  /// Commands of a queue that are done.
  [[nodiscard]] std::uint64_t completed(std::uint32_t queue) const;
  /// Of each queue where commands were refused, why the first was.
  [[nodiscard]] std::vector<std::string> refusals() const;
  [[nodiscard]] EngineStatistics statistics() const;

 private:
  void book();
  void run();
  void rest();
  /// Runs the block once, then does what it has handed over.
  void lease();
  /// Tells the block where memory is, if that has changed.
  void show_pieces();
  [[nodiscard]] bool is_reachable(std::span<const std::byte> piece) const;
  void await_block();
  void answer_handed();
  /// Why a command that was handed over is refused; nullptr: it is done.
  [[nodiscard]] const char* do_command(const Command& command);
  void refuse(std::uint32_t queue, const Command& command, const char* reason);
  /// A word that the block stores.
  [[nodiscard]] std::uint64_t read(const std::uint64_t& word) const;

  Team& team_;
  const EngineClient client_;
  MappedMemory memory_{client_};
  const std::unique_ptr<CommandWorker> worker_;
  const int poll_us_;
  CommandRing* const rings_;
  const std::uint32_t queues_;
  SymmetricArray<ServedRing> served_;
  SymmetricArray<ReachablePiece> pieces_;
  SymmetricArray<HandedCommand> handed_;
  SymmetricArray<std::uint64_t> wanted_;
  std::vector<ReachablePiece> shown_;  ///< what is in `pieces_`
  std::unique_ptr<Stream> stream_;
  Bell bell_;
  std::map<std::uint32_t, std::string> refusals_;  ///< by queue; guarded by the world's `queue_engine_mutex`
  std::atomic<std::uint64_t> leases_{0}, sleeps_{0}, handed_bytes_{0};
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace beeline
