// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The commands of a rank's rings, sent as messages to ranks of other nodes.

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "transports/posted_commands.hpp"
#include "transports/remote_keys.hpp"
#include "transports/remote_peers.hpp"
#include "transports/rows.hpp"

namespace beeline {

/// A payload that has arrived with a message.
struct Payload {
  std::span<const std::byte> bytes;
  StagedBytes owned;       ///< holds the bytes; empty: the transport does
  bool is_placed = false;  ///< the bytes are already at their destination
};

/// The payload, where the device may copy it.
[[nodiscard]] StagedBytes staged_bytes(Staging& staging, Payload payload);

/// Used by one thread at a time.
class RemoteSender {
 public:
  /// A command's index in its ring takes so many bits of the request number in messages; the ring's number is above.
  static constexpr std::uint32_t index_bits = 8;

  RemoteSender(RemotePeers& peers, RemoteKeys& keys) : peers_(peers), keys_(keys) {}

  /// Serves a ring, or a command queue, too. Throws no_resource.
  template <class Ring>
  void open(Ring& ring);
  void close(const CarriedQueue& queue);

  /// Sends what the rings hold, up to a batch of each. Whether there was anything.
  bool send_posted();
  [[nodiscard]] bool has_posted() const;
  /// Publishes which commands are done.
  void advance();

  // What WorkerEvents reports of messages and puts.
  void sent(std::uint64_t token);
  void placed(int peer, std::uint64_t number, bool is_there);

  // Answers to this rank's commands.

  void take_answer(const NetworkMessage& message, Payload payload);
  void take_refusal(const NetworkMessage& message, std::span<const std::byte> payload);
  /// The rows of this rank's memory that an answer with data goes to; none: the answer is not expected, or is copied.
  [[nodiscard]] Rows rows_of_answer(const NetworkMessage& message);

  // After failures.

  /// Whether a source in this rank's memory is in use, or will be, of what goes to that rank.
  [[nodiscard]] bool reads_sources_for(int peer) const;
  /// Whether that rank has done all that this one has sent, and answered it; true of one that is lost.
  [[nodiscard]] bool is_settled(int peer) const;
  /// Ends waits for answers of ranks that are lost. Commands to them count as done.
  void end_lost();

 private:
  static_assert(PostedCommands::depth <= 1u << index_bits);
  static constexpr std::uint32_t most_rings = 1u << (32 - index_bits);

  /// The command of a ring that is sent next, if its target has room for it.
  [[nodiscard]] PostedCommand* next_of(PostedCommands& ring);
  void begin(PostedCommands& ring, PostedCommand& posted);
  [[nodiscard]] bool may_send(const PostedCommand& posted) const;
  /// Of a row of a command that moves bytes, in one message.
  [[nodiscard]] std::uint64_t most_bytes(const PostedCommands& ring, const PostedCommand& posted) const;
  [[nodiscard]] static Cut cut_for(const PostedCommand& posted) {
    return cut_of(without_signal(posted.command), posted.most_bytes);
  }
  void send_piece(std::uint32_t number, PostedCommands& ring, PostedCommand& posted);
  void send_rows(const NetworkMessage& message, PostedCommands& ring, PostedCommand& posted, const Command& part);
  /// The bytes of rows one behind the other; nullptr: they are not there.
  [[nodiscard]] StagedBytes packed(const Rows& rows, bool is_checked);
  /// Puts bytes into rows; false: these are not there.
  [[nodiscard]] bool unpack(const Rows& rows, bool is_checked, std::span<const std::byte> bytes);
  /// A command of this rank is refused.
  void refuse_own(PostedCommands& ring, PostedCommand& posted, const std::string& reason);
  void send_command(const NetworkMessage& message, PostedCommand& posted, std::span<const std::byte> payload = {},
                    StagedBytes staged = {});
  void send_staged(NetworkMessage message, PostedCommands& ring, PostedCommand& posted, const Rows& rows);
  void send_by_key(NetworkMessage message, PostedCommand& posted, std::span<const std::byte> data, PeerKey& key);
  /// nullptr: no ring, or no pending command, has this number.
  [[nodiscard]] PostedCommands* ring_of(std::uint32_t request);
  [[nodiscard]] PostedCommand* posted_of(std::uint32_t request);
  /// Whether the acknowledgement of a command may wait.
  [[nodiscard]] bool acknowledgement_may_wait(const PostedCommands& ring, const PostedCommand& posted) const;
  [[nodiscard]] Rows rows_of_piece(const PostedCommand& posted, std::uint32_t piece) const {
    return local_rows(piece_of(posted.command, cut_for(posted), piece));
  }
  void end_answer(const NetworkMessage& message, PostedCommand& posted);
  void stage_answer(const NetworkMessage& message, PostedCommand& posted, const Rows& rows, Payload payload);

  RemotePeers& peers_;
  RemoteKeys& keys_;
  std::map<std::uint32_t, PostedCommands> rings_;  ///< by number, which none gets that another had
  std::uint32_t next_ring_ = 0;
};

}  // namespace beeline
