// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The commands of one queue that go to ranks of other nodes; the network's engine carries them out.

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "beeline/transport/engine.hpp"
#include "control/host_triggers.hpp"

namespace beeline {

/// Used by the queue's thread alone, except for the functions that the network's engine calls.
class RemoteQueue final : public CarriedQueue {
 public:
  /// A command of the queue that was handed to the network's engine.
  struct Handed {
    Command command{};
    FiredCommand fired{};
    std::uint64_t before = 0;  ///< commands of the queue that count as done while this one is not
    std::uint64_t number = 0;  ///< number of the command in the ring
  };

  /// Keeps a reference to `network`.
  ///   wake  called when a command is over, by a thread of the network's engine; throws nothing
  RemoteQueue(Engine& network, std::function<void()> wake)
      : CarriedQueue(memory_), network_(network), wake_(std::move(wake)) {}
  /// Results of commands in flight are dropped.
  ~RemoteQueue() {
    if (is_open_) network_.close_queue(*this);
  }

  /// Whether a further command may be handed to the network's engine.
  [[nodiscard]] bool has_room() const;
  /// Hands a checked command to the network's engine.
  void hand_over(const Command& command, const FiredCommand& fired, std::uint64_t before);
  /// Lets the network's engine send the commands handed over since the last call. The caller must not be a memory user
  /// (MemoryUser) meanwhile: the network's engine works in this call, and may wait for a thread that unmaps memory.
  /// Throws no_resource.
  void submit();

  [[nodiscard]] bool is_idle() const { return handed_.empty(); }
  /// Whether sources became reusable, or commands ended, since the last `take_over`.
  [[nodiscard]] bool has_news() const;
  /// Takes the next command that is over. Returns false if there is none.
  ///   refusal  why the command was refused; empty if it was not
  bool take_over(Handed& handed, std::string& refusal);
  /// Number of the queue's commands whose sources may be reused, or that are done.
  ///   local  the same number for commands to ranks of this node alone
  [[nodiscard]] std::uint64_t reusable(std::uint64_t local);
  [[nodiscard]] std::uint64_t completed(std::uint64_t local);

  // --- Called by the network's engine --------------------------------------------------------------------------

  void refused(std::uint64_t command, const std::string& reason) noexcept override;
  void has_grown() noexcept override;

 private:
  CommandRing memory_{};
  Engine& network_;
  const std::function<void()> wake_;
  bool is_open_ = false;
  std::uint64_t posted_ = 0, submitted_ = 0;  ///< commands of the ring
  std::deque<Handed> handed_;                 ///< commands that are not over
  std::size_t released_ = 0;                  ///< of these, commands whose sources may be reused
  std::uint64_t published_reusable_ = 0, published_completed_ = 0;
  std::mutex mutex_;                 ///< guards the refusal
  std::uint64_t first_refused_ = 0;  ///< number of a command in the ring; 0: none
  std::string refusal_;
};

}  // namespace beeline
