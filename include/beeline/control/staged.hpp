// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Host-controlled transfers through host memory: `host/staged/sequential` and `host/staged/pipelined`.

#include <cstddef>
#include <cstdint>
#include <memory>

namespace beeline {

class World;

/// Two-sided messages through a ring of pinned buffers at the receiver. Both ends' CPU threads take part.
///
/// Sequential: the whole message is copied out, announced, and copied in (one slot of the largest message's size).
/// Pipelined: chunks travel through several slots, so that copies out and in overlap.
/// Source: seed 000 sections 3.2 and 4.4; seed 001, double buffering.
class StagedChannel {
 public:
  /// Collective. Rings between all pairs. `chunk_bytes` 0: the configuration's; `slots` 1 makes it sequential.
  StagedChannel(World& world, std::size_t chunk_bytes, std::uint32_t slots);
  ~StagedChannel();

  /// Sends `bytes` from `source` (this rank's device or host memory). Blocks until `source` may be reused.
  void send(const void* source, std::size_t bytes, int peer);
  /// Receives a message of `bytes`, as many as were sent. Blocks until it is in `destination`.
  void receive(void* destination, std::size_t bytes, int peer);
  /// Both at once, to and from neighbours, without deadlock; a peer of -1 skips that side.
  void exchange(const void* source, int to, void* destination, int from, std::size_t bytes);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace beeline
