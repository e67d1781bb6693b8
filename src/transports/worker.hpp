// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A transport as one rank uses it: connections to ranks of other nodes, messages, and payloads that their receiver
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

/// What a worker reports, in `progress`, `send`, `fetch` and `put`.
class WorkerEvents {
 public:
  /// A message with its payload, which is valid until this returns.
  virtual void received(const NetworkMessage& message, std::span<const std::byte> payload) = 0;
  /// A message whose payload of `bytes` waits at its sender, until it is fetched. False: it never is.
  virtual bool announced(const NetworkMessage& message, void* parcel, std::size_t bytes) = 0;
  /// A fetch for a message of a rank is over.
  ///   is_there  the payload has arrived; otherwise the rank is lost
  virtual void fetched(int peer, std::uint64_t number, bool is_there) = 0;
  /// The source of a message may be reused.
  virtual void sent(std::uint64_t token) = 0;
  /// A put is over.
  ///   is_there  it is in the target's memory; otherwise the rank is lost
  virtual void placed(int peer, std::uint64_t number, bool is_there) = 0;
  /// Nothing goes to that rank, or comes from it, any more.
  virtual void lost(int peer, const std::string& reason) = 0;
  /// One of these functions has thrown.
  virtual void failed(const char* reason) noexcept = 0;

 protected:
  ~WorkerEvents() = default;
};

/// Puts by memory keys, of the transports that have them. Registrations and keys end before the worker.
class KeyedPuts {
 public:
  /// What carries the connection to a rank, in the transport's words; empty: it does not say.
  [[nodiscard]] virtual std::vector<std::string> links_to(int peer) const = 0;
  /// Registers memory, so that others may put to it. Throws unavailable.
  [[nodiscard]] virtual KeyHandle register_memory(std::span<const std::byte> memory) = 0;
  /// The key of what is registered, for others. Throws unavailable.
  [[nodiscard]] virtual std::vector<std::byte> key_of(const KeyHandle& registration) const = 0;
  /// The key of a rank's memory, as `key_of` gave it there. Throws unavailable.
  [[nodiscard]] virtual KeyHandle unpack_key(int peer, std::span<const std::byte> key) = 0;
  /// Writes bytes to a rank's memory, at its address `to`. Returns true where they are in place at once; otherwise
  /// `placed` reports it.
  virtual bool put(int peer, std::span<const std::byte> from, std::uint64_t to, const KeyHandle& key,
                   std::uint64_t number) = 0;

 protected:
  ~KeyedPuts() = default;
};

/// Used by one thread at a time.
class TransportWorker {
 public:
  virtual ~TransportWorker() = default;

  /// Where others reach it.
  [[nodiscard]] virtual std::vector<std::byte> address() const = 0;
  /// Opens the connection to a rank. Throws unreachable.
  ///   remark  at the end of the error
  virtual void connect(int peer, std::span<const std::byte> address, const std::string& remark) = 0;

  /// Sends a message and its payload.
  ///   payload  unchanged until it is sent
  ///   staged   owns the payload; may be empty
  ///   kind     of the payload's memory
  /// Returns true where the source may be reused at once; otherwise `sent(token)` reports it.
  virtual bool send(int peer, const NetworkMessage& message, std::span<const std::byte> payload, std::uint64_t token,
                    StagedBytes staged, DeviceKind kind) = 0;
  /// Gets a payload that a rank has announced with its message of that number. Returns true where it is there at once;
  /// otherwise `fetched` reports the end.
  ///   kind  of the memory that it goes to
  virtual bool fetch(int peer, void* parcel, std::span<std::byte> to, std::uint64_t number, DeviceKind kind) = 0;
  /// Does without a payload that a rank has announced.
  virtual void drop(void* parcel) = 0;
  /// nullptr: this worker has none.
  [[nodiscard]] virtual KeyedPuts* keyed_puts() { return nullptr; }

  /// Ends all connections at once, as `disconnect` does. No key is in use from here on.
  virtual void close() = 0;
  /// Ends the connection to a rank at once: what is in flight to it counts as sent, and its sources are free.
  virtual void disconnect(int peer) = 0;

  /// Whether anything has happened.
  virtual bool progress() = 0;
  /// Whether `descriptor` gets readable when there is something to progress. False: there is something now.
  [[nodiscard]] virtual bool arm() = 0;
  [[nodiscard]] virtual int descriptor() const = 0;
};

}  // namespace beeline
