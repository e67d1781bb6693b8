// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The commands of one ring that an engine has taken and that are not complete.

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "beeline/transport/engine.hpp"
#include "transports/rows.hpp"

namespace beeline {

/// A command that was taken and is not complete.
struct PostedCommand {
  Command command{};
  std::uint64_t pieces = 0;      ///< number of its messages, or of the entries of a batch
  std::uint64_t next = 0;        ///< the piece, or entry, to send next
  std::uint32_t sending = 0;     ///< messages whose source is in use; gets by key that are in flight
  std::uint32_t awaited = 0;     ///< answers that have not arrived
  std::uint64_t last = 0;        ///< number of its last message
  std::uint64_t most_bytes = 0;  ///< largest part of a row that one message carries
  bool is_open = false;
  bool is_refused = false;
  bool is_checked = false;  ///< its memory in this rank may not be mapped, or may be unmapped soon

  [[nodiscard]] bool is_sent() const { return next == pieces; }
};

class PostedCommands {
 public:
  static constexpr std::uint32_t depth = command_ring_depth;

  explicit PostedCommands(CommandRing& ring) : reader_(ring) {}
  explicit PostedCommands(CarriedQueue& queue) : reader_(queue.ring), queue_(&queue) {}

  /// Takes the next command of the ring; nullptr if there is none, or no room.
  [[nodiscard]] PostedCommand* take() {
    if (taken_ - completed_ == depth) return nullptr;
    PostedCommand& posted = at(taken_);
    if (!reader_.take(posted.command)) return nullptr;
    reader_.release_slots();
    const Command command = posted.command;
    posted = {};
    posted.command = command, posted.is_open = true;
    ++taken_;
    return &posted;
  }
  /// The command queue that the ring belongs to; nullptr if it belongs to none.
  [[nodiscard]] CarriedQueue* queue() const { return queue_; }
  /// Refuses a command of a queue, and with it all later commands of the queue.
  void refuse(PostedCommand& posted, const std::string& reason) {
    posted.is_refused = true, posted.next = posted.pieces;
    if (refused_ != 0) return;
    refused_ = posted.command.sequence;
    queue_->refused(refused_, reason);
  }
  [[nodiscard]] bool has_refused() const { return refused_ != 0; }
  [[nodiscard]] bool has_next() const { return taken_ - completed_ < depth && reader_.has_next(); }
  /// The command taken last, if some of its pieces have not been sent; otherwise nullptr.
  [[nodiscard]] const PostedCommand* begun() const {
    const PostedCommand& last = commands_[(taken_ - 1) % depth];
    return completed_ == taken_ || last.is_sent() ? nullptr : &last;
  }
  [[nodiscard]] PostedCommand* begun() { return const_cast<PostedCommand*>(std::as_const(*this).begun()); }
  /// The index by which messages identify a command.
  [[nodiscard]] std::uint32_t index_of(const PostedCommand& posted) const {
    return static_cast<std::uint32_t>(&posted - commands_.data());
  }
  /// nullptr if no pending command has this index.
  [[nodiscard]] PostedCommand* find(std::uint32_t index) {
    return index < depth && commands_[index].is_open ? &commands_[index] : nullptr;
  }
  /// Calls `visit(command)` for each pending command.
  template <class Visit>
  void for_open(const Visit& visit) const {
    for (const PostedCommand& posted : commands_)
      if (posted.is_open) visit(posted);
  }
  void answer(const PostedCommand& posted, std::uint64_t value) {
    if (posted.command.answers) reader_.answer(posted.command, value);
  }
  /// Answers commands whose answers will not arrive, because they were refused or their target is lost, once nothing
  /// writes to their memory. Their posters find that the world has ended.
  template <class IsLost>
  void end_answers(const IsLost& is_lost) {
    for (PostedCommand& posted : commands_) {
      if (!posted.is_open || posted.awaited == 0 || !(posted.is_refused || is_lost(posted.command.peer))) continue;
      if (gets_rows(posted.command) && posted.sending != 0) continue;
      posted.awaited = 0;
      answer(posted, 0);
    }
  }
  /// Publishes, in the ring's order, the commands whose sources are no longer read, and those that are complete.
  ///   acknowledged  returns the number of the last message that a rank has done
  ///   completes     false: none is published as complete
  template <class Acknowledged>
  void advance(const Acknowledged& acknowledged, bool completes = true) {
    const std::uint64_t released = released_, completed = completed_;
    while (released_ < taken_ && at(released_).is_sent() && at(released_).sending == 0 && at(released_).awaited == 0)
      ++released_;
    while (completes && completed_ < released_ && acknowledged(at(completed_).command.peer) >= at(completed_).last) {
      at(completed_).is_open = false;
      ++completed_;
    }
    if (released_ != released) reader_.release_sources(done(released_));
    if (completed_ != completed) reader_.complete(done(completed_));
    if (queue_ != nullptr && (released_ != released || completed_ != completed)) queue_->has_grown();
  }
  [[nodiscard]] bool is_idle() const { return completed_ == taken_; }
  /// Number of messages to a rank whose sources are in use or will be.
  [[nodiscard]] std::uint64_t sources_of(std::uint32_t peer) const {
    std::uint64_t found = 0;
    for (const PostedCommand& posted : commands_)
      if (posted.is_open && posted.command.peer == peer && (puts_rows(posted.command) || is_batch(posted.command)))
        found += posted.sending + (posted.pieces - posted.next);
    return found;
  }

 private:
  [[nodiscard]] DoneCount done(std::uint64_t commands) {
    return DoneCount::of(at(commands - 1).command.sequence, refused_ != 0);
  }
  [[nodiscard]] PostedCommand& at(std::uint64_t number) { return commands_[number % depth]; }

  CommandReader reader_;
  CarriedQueue* queue_ = nullptr;
  std::uint64_t refused_ = 0;                               ///< sequence of the first refused command; 0: none
  std::uint64_t taken_ = 0, released_ = 0, completed_ = 0;  ///< counts of the ring's commands
  std::array<PostedCommand, depth> commands_{};
};

}  // namespace beeline
