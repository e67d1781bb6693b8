// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Messages that CPU threads copy through host memory: `host/staged/sequential` and `host/staged/pipelined`.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "beeline/device/wait.hpp"
#include "beeline/host/impl/team_life.hpp"

namespace beeline {

class World;

/// Two-sided messages between all pairs of ranks, through rings of pinned buffers at the receivers. CPU threads of both
/// ranks take part. Between two ranks messages keep their order, and at most one thread of each rank uses a direction
/// at a time.
///
/// Sequential: one slot with the size of the largest message; the sender copies the message into it and announces it,
/// and the receiver copies it out. Pipelined: the message goes in chunks through several slots, so that the copies of
/// sender and receiver overlap.
/// Source: seed 000 sections 3.2 and 4.4; seed 001, double buffering.
class StagedChannel {
 public:
  /// Collective. `chunk_bytes` 0: the configuration's (`BEELINE_CHUNK_BYTES`). With `slots` 1 the channel is
  /// sequential. Throws invalid_argument if ranks pass different values.
  StagedChannel(World& world, std::size_t chunk_bytes, std::uint32_t slots);
  /// Collective.
  ~StagedChannel();

  /// Sends `bytes` from `source` (this rank's device or host memory). Blocks until `source` may be reused. A message of
  /// 0 bytes is permitted, with or without an address.
  /// Throws invalid_argument (no such peer, a null address, or another call has to be continued) or unreachable (memory
  /// of a GPU that this rank does not reach), before anything is touched; deadline, aborted or peer_died if the wait
  /// fails.
  ///   timeout  the call's own limit; after `timeout` the same call, with the same arguments, continues; until it
  ///            returns ok, other messages to this peer are refused with invalid_argument
  [[nodiscard]] Status send(const void* source, std::size_t bytes, int peer, Timeout timeout);
  void send(const void* source, std::size_t bytes, int peer) {
    static_cast<void>(send(source, bytes, peer, Timeout::none()));
  }
  /// Receives a message of `bytes`, which is the length that `peer` has sent. Blocks until the message is in
  /// `destination`. Otherwise the same as `send`. Throws invalid_argument if the next message from `peer` has another
  /// length; a later receive with that length still gets it.
  [[nodiscard]] Status receive(void* destination, std::size_t bytes, int peer, Timeout timeout);
  void receive(void* destination, std::size_t bytes, int peer) {
    static_cast<void>(receive(destination, bytes, peer, Timeout::none()));
  }
  /// Sends to `to` and receives from `from` at the same time, so that neighbours swap without a deadlock.
  /// A peer of -1 omits that direction. Otherwise the same as `send` and `receive`. If the received message has another
  /// length than `bytes`, the call throws after its own message has been sent. A call that timed out is continued only
  /// by `send_receive`, not by `send` or `receive`.
  [[nodiscard]] Status send_receive(const void* source, int to, void* destination, int from, std::size_t bytes,
                                    Timeout timeout);
  void send_receive(const void* source, int to, void* destination, int from, std::size_t bytes) {
    static_cast<void>(send_receive(source, to, destination, from, bytes, Timeout::none()));
  }

  /// Time in nanoseconds that this rank's calls have waited for their peers: senders for a free buffer, receivers for
  /// data. Source: seed 001, waits of threads under contention.
  [[nodiscard]] std::uint64_t waited_ns() const;

 private:
  struct Implementation;
  detail::TeamOwned<Implementation> implementation_;
};

}  // namespace beeline
