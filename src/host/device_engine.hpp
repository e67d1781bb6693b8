// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The host's part of the device engine of command queues (control/service_block.hpp).

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "beeline/control/engine_statistics.hpp"
#include "beeline/host/team.hpp"
#include "beeline/transport/stream.hpp"
#include "control/command_worker.hpp"
#include "control/refusals.hpp"
#include "control/service_block.hpp"
#include "host/leased_grid.hpp"
#include "host/reachable_pieces.hpp"
#include "memory/memory_users.hpp"

namespace beeline {

class DeviceTriggers;

/// The service block of a rank's queues, and the host's work for it between its leases.
class DeviceEngine {
 public:
  /// Collective. Runs a first lease.
  ///   rings  [queues] in this rank's symmetric heap
  DeviceEngine(Team& team, CommandRing* rings, std::uint32_t queues);
  /// Collective. Waits for the end of the current lease.
  ~DeviceEngine();

  /// The word that a poster sets if it finds the engine asleep.
  [[nodiscard]] std::uint64_t* wanted() const { return grid_->terms().wanted; }
  /// Number of a queue's complete commands.
  [[nodiscard]] std::uint64_t completed(std::uint32_t queue) const;
  /// The reason of the first refusal in each queue that has refused commands.
  [[nodiscard]] std::vector<std::string> refusals() const;
  [[nodiscard]] EngineStatistics statistics() const;

  /// From now on counts the triggers that are posted to the queues, and carries out the operations that they fire.
  ///   triggers  outlives this object
  void serve_triggers(DeviceTriggers& triggers);
  /// See LeasedGrid.
  void between_leases(const std::function<void()>& change) { grid_->between_leases(change); }
  /// Asks for a lease.
  void want() { grid_->want(); }
  /// Reads a word that the block stores.
  [[nodiscard]] std::uint64_t read(const std::uint64_t& word) const;

 private:
  /// The commands of one queue to ranks of other nodes: the block posts them, the network's engine carries them out.
  class Carried final : public CarriedQueue {
   public:
    Carried(DeviceEngine& engine, CommandRing& memory, std::uint32_t queue);
    ~Carried();
    Carried(const Carried&) = delete;
    Carried& operator=(const Carried&) = delete;
    [[nodiscard]] const char* check(const Command& command) override;
    [[nodiscard]] bool poster_may_work() const override { return false; }
    void refused(std::uint64_t command, const std::string& reason) noexcept override;
    void has_grown() noexcept override {}
    /// Refuses the queue's commands in flight if the first has not ended by the deadline, or if the world has failed: a
    /// silent rank must not end this one. Called between leases.
    void give_up_overdue();

   private:
    [[nodiscard]] ForwardedCommands& forwarded() const { return engine_.forwarded_.data()[queue_]; }
    /// A command in flight, by its number in the ring, with its number in the queue.
    [[nodiscard]] Command in_flight(std::uint64_t number) const;
    DeviceEngine& engine_;
    const std::uint32_t queue_;
    std::uint64_t seen_ = 0, since_ns_ = 0;  ///< number of the first command in flight; time when it was first seen
  };

  void open_carried();
  void start(Stream& stream, const Lease& lease);
  void answer_handed();
  /// Carries out a command that the block has handed over. Returns the reason if it is refused; nullptr: it is
  /// complete.
  [[nodiscard]] const char* do_command(const Command& command);
  /// Carries out the commands of a queue that the block has handed over, and notifies the block. After a refusal all
  /// later ones are refused, too.
  void answer(std::uint32_t queue);
  /// Keeps the text of a refusal, for the queue's poster and for ranks that wait for the command's effect.
  ///   is_reported  whether it follows from the world's failure, which has an error of its own
  void note_refusal(std::uint32_t queue, const Command& command, const char* reason, bool is_reported = false);

  Team& team_;
  const EngineClient client_;
  MappedMemory memory_{client_};
  MemoryUser memory_user_{*client_.memory_users};  ///< for commands that the block hands over
  const std::unique_ptr<CommandWorker> worker_;
  Refusals& refusals_;  ///< of the world's device engines
  CommandRing* const rings_;
  const std::uint32_t queues_;
  SymmetricArray<ServedRing> served_;
  ReachablePieces pieces_;  ///< commands on other memory are handed to the host
  SymmetricArray<ForwardedCommands> forwarded_;
  std::optional<SymmetricArray<CommandRing>> carried_rings_;  ///< [queues] if there are other nodes, like the next two
  std::optional<SymmetricArray<std::uint8_t>> is_remote_;     ///< [ranks] whether a rank is on another node
  std::vector<std::unique_ptr<Carried>> carried_;             ///< [queues]
  std::atomic<std::uint64_t> handed_bytes_{0};
  std::atomic<DeviceTriggers*> triggers_{nullptr};
  std::optional<LeasedGrid> grid_;
};

}  // namespace beeline
