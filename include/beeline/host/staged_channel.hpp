// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Host-controlled messages through host memory: `host/staged/sequential` and `host/staged/pipelined`.

#include <cstddef>
#include <cstdint>
#include <memory>

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
  StagedChannel(World& world, std::size_t chunk_bytes, std::uint32_t slots);
  /// Collective.
  ~StagedChannel();

  /// Sends `bytes` from `source` (this rank's device or host memory). Blocks until `source` may be reused.
  /// Throws invalid_argument (no such peer), or what ended the wait: deadline, aborted, peer_died.
  void send(const void* source, std::size_t bytes, int peer);
  /// Receives a message of `bytes`, as many as were sent. Blocks until it is in `destination`. Errors as `send`.
  void receive(void* destination, std::size_t bytes, int peer);
  /// Sends to `to` and receives from `from` at the same time, so that neighbours exchange without deadlock.
  /// A peer of -1 leaves that side out.
  void exchange(const void* source, int to, void* destination, int from, std::size_t bytes);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace beeline
