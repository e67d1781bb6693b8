// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The commands of one queue that go to ranks of other nodes: the network's engine carries them.

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

#include "beeline/transport/engine.hpp"
#include "control/host_triggers.hpp"

namespace beeline {

/// Used by one thread, the queue's, but for what the network's engine calls.
class RemoteQueue final : public CarriedQueue {
 public:
  /// A command of the queue that has been handed over.
  struct Handed {
    Command command{};
    FiredCommand fired{};
    std::uint64_t before = 0;  ///< commands of the queue that are done while this one is not
    std::uint64_t number = 0;  ///< of the command in the ring
  };

  /// Both stay where they are.
  ///   source  of the queue's commands: its engine's thread is woken when something is over
  RemoteQueue(Engine& network, const CommandSource& source) : network_(network), source_(source) {}
  /// Results of commands in flight are dropped.
  ~RemoteQueue() {
    if (is_open_) network_.close_queue(*this);
  }

  /// Whether a further command may be handed over.
  [[nodiscard]] bool has_room() const;
  /// Hands a command over, which has been checked.
  void hand_over(const Command& command, const FiredCommand& fired, std::uint64_t before);
  /// The network's engine sends what was handed over since the last call. The caller uses no memory (MemoryUser): the
  /// network's engine, which may wait for who unmaps some, works here. Throws no_resource.
  void submit();

  [[nodiscard]] bool is_idle() const { return handed_.empty(); }
  /// Whether sources may be reused, or commands are over, that `take_over` does not know of.
  [[nodiscard]] bool has_news() const;
  /// Takes the next command that is over. False: there is none.
  ///   refusal  why it was refused; empty: it was not
  bool take_over(Handed& handed, std::string& refusal);
  /// Commands of the queue whose sources may be reused, or that are done.
  ///   local  those, if only commands to ranks of this node counted
  [[nodiscard]] std::uint64_t reusable(std::uint64_t local);
  [[nodiscard]] std::uint64_t completed(std::uint64_t local);

  // --- By the network's engine ---------------------------------------------------------------------------------

  void refused(std::uint64_t command, const std::string& reason) noexcept override;
  void has_grown() noexcept override;

 private:
  Engine& network_;
  const CommandSource& source_;
  bool is_open_ = false;
  std::uint64_t posted_ = 0, submitted_ = 0;  ///< commands of the ring
  std::deque<Handed> handed_;                 ///< not over
  std::size_t released_ = 0;                  ///< of these, those whose sources may be reused
  std::uint64_t published_reusable_ = 0, published_completed_ = 0;
  std::mutex mutex_;                 ///< of the refusal
  std::uint64_t first_refused_ = 0;  ///< a command of the ring; 0: none
  std::string refusal_;
};

}  // namespace beeline
