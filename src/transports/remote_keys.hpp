// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Puts by memory keys: keys of other ranks' memory, and keys that this rank has given of its own memory. Requests for
/// keys, keys, and their ends are messages in the order of all other messages.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transports/remote_peers.hpp"

namespace beeline {

/// A put by key that is in flight.
struct KeyedPut {
  NetworkMessage message;  ///< sent when the data are in place
  KeyOffer key;
};

/// Used by one thread at a time.
class RemoteKeys {
 public:
  explicit RemoteKeys(RemotePeers& peers) : peers_(peers), tables_(peers.size()) {}
  /// Ends all keys and registrations: after the puts that use them, before the workers end.
  void clear();

  /// Decides whether puts to a rank may use keys. Called once the rank has greeted.
  void choose(int peer);
  /// A text for users, after a comma; empty if no puts to the rank use keys.
  [[nodiscard]] std::string puts_to(int peer) const;

  // The keys of other ranks' memory.

  /// The key that part of a put uses; nullptr if the part goes in a message.
  [[nodiscard]] PeerKey* key_for(std::uint32_t peer, const Command& part);
  /// Writes the data of a message, which is sent once the data are in place. Returns whether the data are in place at
  /// once; if not, `WorkerEvents::placed` reports it later.
  [[nodiscard]] bool put(std::uint32_t peer, const NetworkMessage& message, std::span<const std::byte> data,
                         PeerKey& key);
  /// Takes a put that is complete; nothing if no such put is known.
  [[nodiscard]] std::optional<KeyedPut> take_put(std::uint32_t peer, std::uint64_t number);
  /// Records that a put no longer uses the key.
  void release(std::uint32_t peer, const KeyOffer& key);
  void take_key(const NetworkMessage& message, std::span<const std::byte> payload);
  void take_end_of_key(const NetworkMessage& message);
  /// Records the receiver's memory that a command reads and writes, which the message sent last carries. A batch has no
  /// memory of its own, but its entries have.
  void add_footprint(const Command& command);

  // The keys of this rank's memory. The address of a piece's first byte identifies the piece.

  void give_key(const NetworkMessage& message);
  void take_back(const NetworkMessage& message) { pieces_.give_back(message.value, static_cast<int>(message.from)); }
  /// Called before a piece is unmapped: gives no further keys of the piece, and asks for those that other ranks have.
  /// Returns false if there are none.
  [[nodiscard]] bool end_keys(const std::byte* start);
  /// The ranks that are not lost and have not given back their key of the piece.
  [[nodiscard]] std::vector<int> holders_of(const std::byte* start) const;
  /// Ends the registration of a piece: other ranks can no longer write to it.
  void unregister(const std::byte* start);
  /// Called when the piece has been unmapped, or stays mapped: then other ranks may ask for its key again.
  void forget(const std::byte* start);

  [[nodiscard]] NetworkStatistics statistics() const;

 private:
  /// Keys and puts of one rank.
  struct Table {
    KeyedPuts* worker = nullptr;  ///< nullptr: puts to the rank go in messages
    std::string links;            ///< names of the connection's links, for users
    PeerKeys keys;
    Footprints footprints;                   ///< memory in use by messages to the rank
    std::map<std::uint64_t, KeyedPut> puts;  ///< by the number of their message
  };

  void ask_key(std::uint32_t peer, std::uint64_t offset);
  /// The registered piece of this rank's memory that contains `address`; nullptr if other ranks get no key of it.
  [[nodiscard]] KeyedPiece* piece_for_key(const std::byte* address, KeyedPuts& worker);

  RemotePeers& peers_;
  std::vector<Table> tables_;  ///< [ranks]
  KeyedPieces pieces_;         ///< pieces of this rank's memory
  NetworkStatistics statistics_;
};

}  // namespace beeline
