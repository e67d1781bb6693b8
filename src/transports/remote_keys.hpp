// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Puts and gets by memory keys: keys of other ranks' memory, and keys that this rank has given of its own memory.
/// Requests for keys, keys, and their ends are messages in the order of all other messages.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transports/remote_peers.hpp"

namespace beeline {

/// Used by one thread at a time.
class RemoteKeys {
 public:
  explicit RemoteKeys(RemotePeers& peers) : peers_(peers), tables_(peers.size()) {}
  /// Ends all keys and registrations: after the puts that use them, before the workers end.
  void clear();

  /// Decides whether puts and gets may use keys of a rank. Called once the rank has greeted.
  void choose(int peer);
  /// The end of the text of a rank's route: that long payloads in GPU memory go by CUDA transports, and which puts and
  /// gets use keys. Each part begins with a comma; empty if neither applies.
  [[nodiscard]] std::string uses_of(int peer) const;

  // The keys of other ranks' memory.

  /// The key that part of a put or get uses; nullptr if the part goes in a message.
  [[nodiscard]] PeerKey* key_for(std::uint32_t peer, const Command& part);
  /// Writes the data of a message, which is sent once the data are in place. Returns whether the data are in place at
  /// once; if not, `WorkerEvents::placed` reports it later.
  [[nodiscard]] bool put(std::uint32_t peer, const NetworkMessage& message, std::span<const std::byte> data,
                         PeerKey& key);
  /// Takes the message of a put that is complete; nothing if no such put is known.
  [[nodiscard]] std::optional<NetworkMessage> take_put(std::uint32_t peer, std::uint64_t number);
  /// Reads the memory that part of a get names. Returns whether the data are here at once; if not, `WorkerEvents::got`
  /// reports it later.
  [[nodiscard]] bool get(const Command& part, std::uint64_t token, PeerKey& key);
  /// Records that a put or get no longer uses the key of the piece that contains an offset.
  void release(std::uint32_t peer, std::uint64_t offset);
  void take_key(const NetworkMessage& message, std::span<const std::byte> payload);
  void take_end_of_key(const NetworkMessage& message);
  /// Records the receiver's memory that a command reads and writes; the message sent last carries the command. For a
  /// batch it is called with each entry, since a batch has no memory of its own.
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
  /// Keys of one rank, and puts to it.
  struct Table {
    bool gives_none = false;           ///< the rank has answered that it gives no key of its GPU memory
    KeyedTransfers* worker = nullptr;  ///< nullptr: nothing uses keys of the rank
    std::string links;                 ///< names of the connection's links, for users
    PeerKeys keys;
    Footprints footprints;                         ///< memory in use by messages to the rank
    std::map<std::uint64_t, NetworkMessage> puts;  ///< in flight, by number: sent when the data are in place
  };

  void ask_key(std::uint32_t peer, std::uint64_t offset);
  /// The registered piece of this rank's memory that contains `address`; nullptr if other ranks get no key of it.
  ///   for_gpu  whether the piece may be GPU memory
  [[nodiscard]] KeyedPiece* piece_for_key(const std::byte* address, KeyedTransfers& worker, bool for_gpu);

  RemotePeers& peers_;
  std::vector<Table> tables_;             ///< [ranks]
  KeyedPieces pieces_;                    ///< pieces of this rank's memory
  const std::byte* unmapping_ = nullptr;  ///< start of the piece that is about to be unmapped
  NetworkStatistics statistics_;
};

}  // namespace beeline
