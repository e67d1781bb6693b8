// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Carries out the commands in messages from ranks of other nodes, in the order of the messages' numbers.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "control/command_check.hpp"
#include "memory/memory_users.hpp"
#include "transports/remote_sender.hpp"

namespace beeline {

/// Used by one thread at a time.
class RemoteReceiver final : public WorkerEvents {
 public:
  RemoteReceiver(RemotePeers& peers, RemoteSender& sender, RemoteKeys& keys)
      : peers_(peers), sender_(sender), keys_(keys) {}

  /// Carries out messages that had to wait for the device or for memory. Returns whether the device did any work.
  bool turn();

  void received(const NetworkMessage& message, std::span<const std::byte> payload) override;
  bool announced(const NetworkMessage& message, void* parcel, std::size_t bytes) override;
  void fetched(int peer, std::uint64_t number, bool is_there) override;
  void sent(std::uint64_t token) override { sender_.sent(token); }
  void placed(int peer, std::uint64_t number, bool is_there) override { sender_.placed(peer, number, is_there); }
  void got(int peer, std::uint64_t token, bool is_there) override { sender_.got(peer, token, is_there); }
  void lost(int peer, const std::string& reason) override { peers_.lose(peer, reason); }
  void failed(const char* reason) noexcept override { peers_.failed(reason); }

 private:
  /// The sender of a message; nullptr if the message is of another world, or its sender is lost.
  [[nodiscard]] RemotePeer* sender_of(const NetworkMessage& message);
  /// The sender, if the message has a number and may arrive now. Stores the acknowledgement that the message carries.
  [[nodiscard]] RemotePeer* sender_in_turn(const NetworkMessage& message);
  enum class Fetch { begun, later, unwanted };
  /// Begins to fetch a payload: straight to its destination if possible, otherwise to a buffer. Returns `later` while
  /// memory is about to be unmapped, `unwanted` if the payload is too long for a buffer.
  Fetch fetch(Arrival& arrival);
  Fetch fetch_to_buffer(Arrival& arrival);
  void begin_fetch(Arrival& arrival, std::span<std::byte> to);
  void end_hold(Arrival& arrival);
  /// Begins to fetch the payloads of later messages, so that the network is busy while one payload is copied. The
  /// payloads go to buffers of the rank's device, or to memory that no earlier message reads or writes.
  void fetch_ahead(RemotePeer& from);
  /// Adds to `used` the memory of this rank that a message reads and writes. Returns false if the message will be
  /// refused.
  bool add_footprint(const NetworkMessage& message, std::vector<std::span<const std::byte>>& used);
  /// Carries out the stored messages whose turn it is.
  void do_kept(RemotePeer& from);
  /// Whether a message is complete, and there is room to carry it out.
  [[nodiscard]] bool is_ready(Arrival& next);
  /// The destination of a payload whose rows need no unpacking; empty if the payload goes to a buffer.
  [[nodiscard]] std::span<std::byte> destination_of(const NetworkMessage& message, std::size_t bytes);
  void perform(const NetworkMessage& message, Payload payload);
  void perform_command(const NetworkMessage& message, Payload payload);
  void perform_batch(const NetworkMessage& message, std::span<const std::byte> payload);
  /// Carries out a command without a signal, whose addresses have been checked. Returns false if the command is
  /// refused.
  bool do_command(const NetworkMessage& message, const CommandTarget& target, Payload payload);
  bool stage_command(const NetworkMessage& message, const Rows& rows, Payload payload);
  void reply_rows(const NetworkMessage& to, const Rows& rows);
  void refuse(const NetworkMessage& message, const std::string& reason);
  [[nodiscard]] CommandTarget target_at(const Command& command) {
    return target_of(peers_.memory()->client, peers_.memory()->mapped, command);
  }
  /// Whether a message may be carried out.
  [[nodiscard]] bool has_room(const NetworkMessage& message) const;

  /// The holds on memory that payloads are fetched to.
  class Holds {
   public:
    ~Holds() {
      while (count_ > 0) release();
    }
    [[nodiscard]] bool try_hold(MemoryUsers& users) {
      if (!users.try_hold()) return false;
      users_ = &users, ++count_;
      return true;
    }
    void release() { users_->release(), --count_; }

   private:
    MemoryUsers* users_ = nullptr;
    int count_ = 0;
  };

  Holds holds_;               ///< must end after the workers' fetches
  bool is_deferred_ = false;  ///< a fetch is to be tried again
  RemotePeers& peers_;
  RemoteSender& sender_;
  RemoteKeys& keys_;
};

}  // namespace beeline
