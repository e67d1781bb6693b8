// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Host-controlled messages through host memory: `host/staged/sequential` and `host/staged/pipelined`.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "beeline/device/wait.hpp"

namespace beeline {

class World;

/// Two-sided messages between all pairs of ranks, through rings of pinned buffers at the receivers. The CPU threads of
/// both ends take part; between two ranks messages keep their order, and one thread of each drives a direction at a
/// time.
///
/// Sequential: one slot of the largest message's size: out, announced, in. Pipelined: chunks through several slots, so
/// that the copies out and in overlap.
/// Source: seed 000 sections 3.2 and 4.4; seed 001, double buffering.
class StagedChannel {
 public:
  /// Collective. `chunk_bytes` 0: the configuration's (`BEELINE_CHUNK_BYTES`); `slots` 1 makes it sequential.
  /// Throws invalid_argument when ranks give different ones.
  StagedChannel(World& world, std::size_t chunk_bytes, std::uint32_t slots);
  /// Collective.
  ~StagedChannel();

  /// Sends `bytes` from `source` (this rank's device or host memory). Blocks until `source` may be reused. A message of
  /// 0 bytes is one like any other, with or without an address.
  /// Throws invalid_argument (no such peer, a null address, another call to be continued) or unreachable (memory of a
  /// GPU that this rank does not reach) before anything is touched; or what ended the wait: deadline, aborted,
  /// peer_died.
  ///   timeout  the call's own limit: then `timeout`, and the same call, with the same arguments, continues; until that
  ///            has returned ok, other messages to this peer are refused with invalid_argument
  [[nodiscard]] Status send(const void* source, std::size_t bytes, int peer, Timeout timeout);
  void send(const void* source, std::size_t bytes, int peer) {
    static_cast<void>(send(source, bytes, peer, Timeout::none()));
  }
  /// Receives a message of `bytes`, as many as were sent. Blocks until it is in `destination`. Otherwise as `send`.
  /// Throws invalid_argument where the next message of `peer` has another length; it stays, for a receive of that
  /// length.
  [[nodiscard]] Status receive(void* destination, std::size_t bytes, int peer, Timeout timeout);
  void receive(void* destination, std::size_t bytes, int peer) {
    static_cast<void>(receive(destination, bytes, peer, Timeout::none()));
  }
  /// Sends to `to` and receives from `from` at the same time, so that neighbours swap without a deadlock.
  /// A peer of -1 leaves that side out. Otherwise as `send` and `receive`; where lengths differ, it throws after its
  /// own message has been sent. Only a `send_receive` continues one that timed out, not its halves.
  [[nodiscard]] Status send_receive(const void* source, int to, void* destination, int from, std::size_t bytes,
                                    Timeout timeout);
  void send_receive(const void* source, int to, void* destination, int from, std::size_t bytes) {
    static_cast<void>(send_receive(source, to, destination, from, bytes, Timeout::none()));
  }

  /// Nanoseconds in which this rank's calls had nothing to do but to wait for their peers: senders for a buffer,
  /// receivers for data. Source: seed 001, waits of threads under contention.
  [[nodiscard]] std::uint64_t waited_ns() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace beeline
