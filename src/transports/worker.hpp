// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A rank's end of a transport: connections to ranks of other nodes, messages, and payloads that their receiver
/// fetches.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transports/memory_keys.hpp"
#include "transports/message.hpp"
#include "transports/staging_buffers.hpp"

namespace beeline {

/// What a worker reports; called from `progress`, `send`, `fetch`, `put` and `get`.
class WorkerEvents {
 public:
  /// A message has arrived. Its payload is valid until this function returns.
  virtual void received(const NetworkMessage& message, std::span<const std::byte> payload) = 0;
  /// A message has arrived whose payload of `bytes` waits at its sender. Returns false if it will never be fetched.
  virtual bool announced(const NetworkMessage& message, void* parcel, std::size_t bytes) = 0;
  /// The fetch of a message's payload has ended.
  ///   is_there  whether the payload has arrived; if not, the rank is lost
  virtual void fetched(int peer, std::uint64_t number, bool is_there) = 0;
  /// The source of a message may be reused.
  virtual void sent(std::uint64_t token) = 0;
  /// A put has ended.
  ///   is_there  whether the data are in the target's memory; if not, the rank is lost
  virtual void placed(int peer, std::uint64_t number, bool is_there) = 0;
  /// A get has ended.
  ///   is_there  whether the data are in this rank's memory; if not, the rank is lost
  virtual void got(int peer, std::uint64_t token, bool is_there) = 0;
  /// The connection to a rank is lost: no further message goes to the rank or comes from it.
  virtual void lost(int peer, const std::string& reason) = 0;
  /// One of these functions has thrown.
  virtual void failed(const char* reason) noexcept = 0;

 protected:
  ~WorkerEvents() = default;
};

/// Puts and gets by memory keys, for the transports that have them. Registrations and keys end before the worker.
class KeyedTransfers {
 public:
  /// The transport's names of the links that carry the connection to a rank; empty if it reports none.
  [[nodiscard]] virtual std::vector<std::string> links_to(int peer) const = 0;
  /// Registers memory, so that other ranks may write and read it. Throws unavailable.
  [[nodiscard]] virtual KeyHandle register_memory(std::span<const std::byte> memory) = 0;
  /// The key of registered memory, for other ranks. Throws unavailable.
  [[nodiscard]] virtual std::vector<std::byte> key_of(const KeyHandle& registration) const = 0;
  /// Makes a key usable that `key_of` has returned on rank `peer`. Throws unavailable.
  [[nodiscard]] virtual KeyHandle unpack_key(int peer, std::span<const std::byte> key) = 0;
  /// Writes bytes to a rank's memory, at its address `to`. Returns true if the bytes are in place at once; otherwise
  /// `placed` reports the end.
  ///   kind  of the memory at `from`
  virtual bool put(int peer, std::span<const std::byte> from, std::uint64_t to, const KeyHandle& key,
                   std::uint64_t number, DeviceKind kind) = 0;
  /// Reads bytes of a rank's memory, at its address `from`. Returns true if the bytes are here at once; otherwise `got`
  /// reports the end.
  virtual bool get(int peer, std::span<std::byte> to, std::uint64_t from, const KeyHandle& key,
                   std::uint64_t token) = 0;

 protected:
  ~KeyedTransfers() = default;
};

/// Used by one thread at a time.
class TransportWorker {
 public:
  virtual ~TransportWorker() = default;

  /// The address by which other ranks connect to this worker.
  [[nodiscard]] virtual std::vector<std::byte> address() const = 0;
  /// Opens the connection to a rank. Throws unreachable.
  ///   remark  added at the end of the error
  virtual void connect(int peer, std::span<const std::byte> address, const std::string& remark) = 0;

  /// Sends a message and its payload.
  ///   payload  must not change until the message is sent
  ///   staged   owns the payload; may be empty
  ///   kind     of the payload's memory
  /// Returns true if the source may be reused at once; otherwise `sent(token)` reports it.
  virtual bool send(int peer, const NetworkMessage& message, std::span<const std::byte> payload, std::uint64_t token,
                    StagedBytes staged, DeviceKind kind) = 0;
  /// Fetches the payload that a rank has announced with message `number`. Returns true if it has arrived at once;
  /// otherwise `fetched` reports the end.
  ///   kind  of the memory at `to`
  virtual bool fetch(int peer, void* parcel, std::span<std::byte> to, std::uint64_t number, DeviceKind kind) = 0;
  /// Discards a payload that a rank has announced.
  virtual void drop(void* parcel) = 0;
  /// nullptr if this worker has no transfers by keys.
  [[nodiscard]] virtual KeyedTransfers* keyed_transfers() { return nullptr; }

  /// Copies what messages to a rank still read from their sources, which then count as sent. Returns false if the
  /// transport cannot, or if the copies would be larger than `most_copied_bytes`.
  [[nodiscard]] virtual bool copy_sources([[maybe_unused]] int peer) { return false; }
  static constexpr std::size_t most_copied_bytes = std::size_t{256} << 20;

  /// Ends all connections at once, as `disconnect` does. No key is in use from now on.
  virtual void close() = 0;
  /// Ends the connection to a rank at once: messages in flight to it count as sent, and their sources may be reused.
  virtual void disconnect(int peer) = 0;

  /// Does the transport's work. Returns whether there was any.
  virtual bool progress() = 0;
  /// Prepares `descriptor` to become readable when there is work. Returns false if there is work now.
  [[nodiscard]] virtual bool arm() = 0;
  [[nodiscard]] virtual int descriptor() const = 0;
};

}  // namespace beeline
