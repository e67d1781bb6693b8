// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The commands of a rank's rings, sent as messages to ranks of other nodes.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "control/command_check.hpp"
#include "transports/posted_commands.hpp"
#include "transports/remote_keys.hpp"
#include "transports/remote_peers.hpp"
#include "transports/rows.hpp"

namespace beeline {

/// A payload that has arrived with a message.
struct Payload {
  std::span<const std::byte> bytes;
  StagedBytes owned;       ///< holds the bytes; empty: the transport holds them
  bool is_placed = false;  ///< the bytes are already at their destination
};

/// The payload in a buffer from which the device may copy.
[[nodiscard]] StagedBytes staged_bytes(Staging& staging, Payload payload);

/// Used by one thread at a time.
class RemoteSender {
 public:
  /// Bits of a message's request number that hold the command's index in its ring; the bits above hold the ring's
  /// number.
  static constexpr std::uint32_t index_bits = 8;

  RemoteSender(RemotePeers& peers, RemoteKeys& keys) : peers_(peers), keys_(keys) {}

  /// Serves the ring of a caller or of a command queue from now on. Throws no_resource.
  template <class Ring>
  void open(Ring& ring);
  void close(const CarriedQueue& queue);

  /// Sends the commands that the rings hold, up to a batch of each ring. Returns whether there was any.
  bool send_posted() { return send_from_rings(true).any; }
  /// As above, by a thread for which a thread that unmaps memory may wait. Leaves the commands that use memory which
  /// may be unmapped. Returns whether it has sent all others.
  bool send_posted_without_locks() { return send_from_rings(false).all; }
  [[nodiscard]] bool has_posted() const;
  /// The rank to which the last `send_posted` has sent a command that is answered; nullptr: to none.
  [[nodiscard]] const RemotePeer* asked() const { return asked_; }
  /// Publishes which commands are done.
  void advance();

  // What WorkerEvents reports about messages, puts and gets.
  void sent(std::uint64_t token);
  void placed(int peer, std::uint64_t number, bool is_there);
  void got(int peer, std::uint64_t token, bool is_there);

  // Answers to this rank's commands.

  void take_answer(const NetworkMessage& message, Payload payload);
  void take_refusal(const NetworkMessage& message, std::span<const std::byte> payload);
  /// The rows of this rank's memory that an answer with data goes to. Empty if the answer is not expected, or is
  /// copied.
  [[nodiscard]] Rows rows_of_answer(const NetworkMessage& message);

  // --- Calls after a failure ---

  /// Whether an unfinished command to `peer` reads or will read a source in this rank's memory.
  [[nodiscard]] bool reads_sources_for(int peer) const;
  /// Whether `peer` has done and answered all that this rank has sent; true of a rank that is lost.
  [[nodiscard]] bool is_settled(int peer) const;
  /// Ends waits for answers of ranks that are lost. Commands to them count as done.
  void end_lost();

 private:
  static_assert(PostedCommands::depth <= 1u << index_bits);
  static constexpr std::uint32_t most_rings = 1u << (32 - index_bits);

  struct SentFromRings {
    bool any = false;
    bool all = true;  ///< no command was left, for lack of a lock or since there are more than a batch. Commands whose
                      ///< target has no room are not counted: its acknowledgement wakes the engine
  };
  ///   may_lock  whether the calling thread may become a user of memory
  SentFromRings send_from_rings(bool may_lock);
  /// Whether this rank's memory that a command names is copied under the lock of its users.
  [[nodiscard]] static bool needs_lock(const PostedCommand& posted) {
    const Command& command = posted.command;
    if (posted.is_sent()) return false;
    if (posted.is_checked || is_batch(command)) return true;
    return puts_rows(command) && !local_rows(without_signal(command)).is_whole();
  }
  /// The command of a ring that is sent next; nullptr if there is none, or its target has no room for it.
  [[nodiscard]] PostedCommand* next_of(PostedCommands& ring);
  void begin(PostedCommands& ring, PostedCommand& posted);
  [[nodiscard]] bool may_send(const PostedCommand& posted) const;
  /// Largest part of a row, in bytes, that one message carries.
  [[nodiscard]] std::uint64_t most_bytes(const PostedCommands& ring, const PostedCommand& posted) const;
  [[nodiscard]] static Cut cut_for(const PostedCommand& posted) {
    return cut_of(without_signal(posted.command), posted.most_bytes);
  }
  void send_piece(std::uint32_t number, PostedCommands& ring, PostedCommand& posted);
  /// Sends entries of a batch: as many as fit a message.
  void send_entries(NetworkMessage message, PostedCommands& ring, PostedCommand& posted);
  /// Refuses a batch of this rank; no further entry of it is sent.
  void refuse_batch(PostedCommands& ring, PostedCommand& posted, const char* reason);
  [[nodiscard]] BatchEntries entries_of(const PostedCommand& posted);
  /// Writes the payload of a message of `send_entries`. Returns nullptr, or why an entry is refused.
  [[nodiscard]] const char* packed_entries(const PostedCommand& posted, std::span<const BatchEntry> entries,
                                           std::byte* payload);
  /// Sends the next entry of a batch, which has rows, by itself.
  void send_entry(NetworkMessage message, PostedCommands& ring, PostedCommand& posted, const Command& entry);
  void send_rows(const NetworkMessage& message, PostedCommands& ring, PostedCommand& posted, const Command& part);
  /// Sends a get, or reads the peer's memory by a key.
  void send_get(const NetworkMessage& message, PostedCommands& ring, PostedCommand& posted, const Command& part);
  /// Copies rows into one contiguous buffer; nullptr if the rows are not in mapped memory.
  [[nodiscard]] StagedBytes packed(const Rows& rows, bool is_checked);
  /// Copies bytes into rows. Returns false if the rows are not in mapped memory.
  [[nodiscard]] bool unpack(const Rows& rows, bool is_checked, std::span<const std::byte> bytes);
  /// Refuses a command of this rank.
  void refuse_own(PostedCommands& ring, PostedCommand& posted, const std::string& reason);
  void send_command(const NetworkMessage& message, PostedCommand& posted, std::span<const std::byte> payload = {},
                    StagedBytes staged = {});
  void send_staged(NetworkMessage message, PostedCommands& ring, PostedCommand& posted, const Rows& rows);
  void send_by_key(NetworkMessage message, PostedCommand& posted, std::span<const std::byte> data, PeerKey& key);
  /// nullptr if no ring or pending command has this number.
  [[nodiscard]] PostedCommands* ring_of(std::uint32_t request);
  [[nodiscard]] PostedCommand* posted_of(std::uint32_t request);
  /// Whether the ring of a request was closed.
  [[nodiscard]] bool is_closed(std::uint32_t request);
  /// Lets the acknowledgement of a message with a signal wait, if its poster allows that.
  void let_acknowledgement_wait(NetworkMessage& message, const PostedCommands& ring, const PostedCommand& posted);
  [[nodiscard]] Rows rows_of_piece(const PostedCommand& posted, std::uint32_t piece) const {
    return local_rows(piece_of(posted.command, cut_for(posted), piece));
  }
  ///   value  of the word, if the command has changed one
  void end_answer(std::uint32_t request, PostedCommand& posted, std::uint64_t value);
  void stage_answer(const NetworkMessage& message, PostedCommand& posted, const Rows& rows, Payload payload);

  RemotePeers& peers_;
  RemoteKeys& keys_;
  struct NumberedRing {
    std::uint32_t number;  ///< not used again
    std::unique_ptr<PostedCommands> commands;
  };
  std::vector<NumberedRing> rings_;  ///< in the order of their numbers; each turn looks at all of them
  std::uint32_t next_ring_ = 0;
  const RemotePeer* asked_ = nullptr;
};

}  // namespace beeline
