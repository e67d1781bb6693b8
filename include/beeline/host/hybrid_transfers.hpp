// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Copies and puts that go directly up to a threshold, and above it through host memory: `host/hybrid/pipelined`.

#include <cstddef>
#include <cstdint>

#include "beeline/device/wait.hpp"
#include "beeline/host/impl/team_life.hpp"
#include "beeline/host/team.hpp"
#include "beeline/transport/stream.hpp"

namespace beeline {

/// How transfers are divided. 0: the configuration's value (`BEELINE_HYBRID_...`).
struct HybridOptions {
  /// Bytes that go directly at most. SIZE_MAX: all transfers do. If the configuration's value is 0, too, the path
  /// decides: transfers from GPU memory to other nodes are staged, in chunks of at least 128 KiB, enough to use all
  /// buffers twice; all others go directly.
  std::size_t threshold_bytes = 0;
  std::size_t chunk_bytes = 0;  ///< largest chunk
  std::uint32_t chunks = 0;     ///< chunks in flight, 1 to 64: the number of buffers
};

/// One-sided transfers between any two addresses, in the memory of GPUs or CPUs. Longer ones are staged on this side
/// alone: the stream of the transfer copies chunks into pinned buffers, with an event after each, and another stream
/// delivers each chunk straight to the destination, by a copy inside a node or by a put of the engine to another node.
/// A transfer of one chunk needs no second stream. The CPU of the destination's rank takes no part if the transport
/// itself writes; no CPU thread of this rank waits for a chunk.
///
/// Staged transfers of one object use its buffers one after the other, in the order of the calls: streams that must not
/// wait for each other have an object each. Any thread may call any function.
/// Source: seed 000, section 4.3.8, gpu_write (there a CPU thread polls the events).
class HybridTransfers {
 public:
  /// Collective. Each member has `chunks` buffers of `chunk_bytes` in its pinned heap. Throws invalid_argument if
  /// members pass different sizes or more than 64 chunks, no_resource if the pinned heap of a member has no room.
  explicit HybridTransfers(Team& team, const HybridOptions& options = {});
  /// Collective. Waits for this object's transfers.
  ~HybridTransfers();

  /// Sets the options of this rank's later transfers; 0: as constructed. Throws invalid_argument, without effect, for
  /// chunks that do not fit into the buffers.
  void set(const HybridOptions& options);
  /// The options in force. A `threshold_bytes` of 0: it depends on the path.
  [[nodiscard]] HybridOptions options() const;
  /// Whether a transfer would be staged. Throws unreachable for memory that this rank does not reach.
  [[nodiscard]] bool is_staged(const void* destination, const void* source, std::size_t bytes) const;

  /// Copies `bytes` from `source` to `destination`, and blocks until they are in place. Errors and order as of
  /// `World::copy`: the copy has no order with any stream, and later signals of this thread come after the data.
  ///   timeout  the call's own limit; after `timeout` the transfer goes on, both ends stay in use, and the same call,
  ///            with the same arguments, continues to wait. Other calls are permitted meanwhile
  [[nodiscard]] Status copy(void* destination, const void* source, std::size_t bytes, Timeout timeout);
  void copy(void* destination, const void* source, std::size_t bytes) {
    static_cast<void>(copy(destination, source, bytes, Timeout::none()));
  }
  /// `copy` to `peer`, a rank of the team.
  ///   destination  symmetric address
  [[nodiscard]] Status put(void* destination, const void* source, std::size_t bytes, int peer, Timeout timeout);
  void put(void* destination, const void* source, std::size_t bytes, int peer) {
    static_cast<void>(put(destination, source, bytes, peer, Timeout::none()));
  }

  /// The same in the order of a stream (nullptr: the rank's default stream): begins after the stream's earlier work,
  /// and later work of the stream, also a signal, finds the data in place. `World::synchronize`, for the stream or an
  /// event on it, is the wait for completion, with time-out and deadline. Throws unavailable for a staged transfer
  /// while the stream is captured.
  void copy_on_stream(void* destination, const void* source, std::size_t bytes, Stream* stream = nullptr);
  void put_on_stream(void* destination, const void* source, std::size_t bytes, int peer, Stream* stream = nullptr);

  /// Time in nanoseconds that threads have waited for each other to enqueue transfers on this object.
  /// Source: seed 001, waits of threads for locks.
  [[nodiscard]] std::uint64_t lock_wait_ns() const;

 private:
  struct Implementation;
  detail::TeamOwned<Implementation> implementation_;
};

}  // namespace beeline
