// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Puts by memory keys: the keys of other ranks' memory, and those that this rank has given of its own. Requests for
/// keys, keys, and their ends are messages in the order of all others.

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
  /// Ends all keys and registrations, behind the puts that use them and before the workers.
  void clear();

  /// Decides whether puts to a rank may go by keys; called once it has greeted.
  void choose(int peer);
  /// For people, after a comma; empty: none do.
  [[nodiscard]] std::string puts_to(int peer) const;

  // The keys of others.

  /// The key by which part of a put goes; nullptr: it goes in a message.
  [[nodiscard]] PeerKey* key_for(std::uint32_t peer, const Command& part);
  /// Writes the data of a message, which is sent once they are in place. Returns whether they are at once; otherwise
  /// `WorkerEvents::placed` reports it.
  [[nodiscard]] bool put(std::uint32_t peer, const NetworkMessage& message, std::span<const std::byte> data,
                         PeerKey& key);
  /// A put that is over; nothing: it is unknown.
  [[nodiscard]] std::optional<KeyedPut> take_put(std::uint32_t peer, std::uint64_t number);
  /// A put no longer uses the key.
  void release(std::uint32_t peer, const KeyOffer& key);
  void take_key(const NetworkMessage& message, std::span<const std::byte> payload);
  void take_end_of_key(const NetworkMessage& message);
  /// Keeps what the last message to its rank reads and writes there.
  void add_footprint(const NetworkMessage& message);

  // The keys of this rank's memory: a piece is named by its first byte.

  void give_key(const NetworkMessage& message);
  void take_back(const NetworkMessage& message) { pieces_.give_back(message.value, static_cast<int>(message.from)); }
  /// Before a piece is unmapped: gives no further keys of it, and takes back those that others have. Returns false if
  /// there are none.
  [[nodiscard]] bool end_keys(const std::byte* start);
  /// Live ranks that have not given theirs back.
  [[nodiscard]] std::vector<int> holders_of(const std::byte* start) const;
  /// Others can no longer write to it.
  void unregister(const std::byte* start);
  /// It has been unmapped, or stays: then others may ask for its key again.
  void forget(const std::byte* start);

  [[nodiscard]] NetworkStatistics statistics() const;

 private:
  /// Of one rank.
  struct Table {
    KeyedPuts* worker = nullptr;  ///< nullptr: puts to it go in messages
    std::string links;            ///< of the connection, for people
    PeerKeys keys;
    Footprints footprints;                   ///< of messages to it
    std::map<std::uint64_t, KeyedPut> puts;  ///< by number
  };

  void ask_key(std::uint32_t peer, std::uint64_t offset);
  /// The piece of this rank's memory that contains an address, registered; nullptr: others get no key of it.
  [[nodiscard]] KeyedPiece* piece_for_key(const std::byte* address, KeyedPuts& worker);

  RemotePeers& peers_;
  std::vector<Table> tables_;  ///< [ranks]
  KeyedPieces pieces_;         ///< of this rank
  NetworkStatistics statistics_;
};

}  // namespace beeline
