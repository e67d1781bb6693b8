// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Messages from one member of a team to another: the memory that they need, the channel for kernels, and the calls on
/// streams.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "beeline/collectives/elements.hpp"
#include "beeline/collectives/message_channel.hpp"
#include "beeline/host/impl/typed_vectors.hpp"
#include "beeline/host/team.hpp"
#include "beeline/transport/stream.hpp"

namespace beeline {

/// Sizes of a channel. All ranks give the same; 0: by the kind and number of ranks.
struct MessageOptions {
  unsigned sessions = 0;            ///< blocks that may share in a message
  std::size_t eager_bytes = 0;      ///< longest message that is sent eagerly: the value to tune
  std::uint32_t depth = 0;          ///< messages that may be under way to one receiver, a power of two, at least 2
  std::size_t chunk_bytes = 0;      ///< on each session, for messages between memory outside the heaps; of 4 chunks
  std::uint32_t first_message = 0;  ///< where messages start to count

  bool operator==(const MessageOptions&) const = default;
};

/// How one call is to be made.
struct MessageCall {
  Stream* stream = nullptr;  ///< nullptr: the rank's default stream
  unsigned blocks = 0;       ///< the same at sender and receiver; 0: by size
};

/// What a member sends in a `send_receive_on_stream`.
struct SentMessage {
  const void* source;
  std::size_t count;
  int peer;
};
/// What it receives in the same call, in elements of the same type.
struct ReceivedMessage {
  void* destination;
  std::size_t count;
  int peer;
};

/// A channel for messages between the members of a team, and what a host asks of it: two-sided calls on
/// streams, each one kernel, which the GPU drives alone.
///
/// Between two members messages are matched in the order of the calls, without tags. A receive has as many
/// bytes, and as many blocks, as its send; a difference is detected, and ends the team with an error that names both.
///
/// Short messages are *eager*: they go into memory of the receiver, and the stream goes on. Longer ones wait for the
/// receiver (*rendezvous*): two members that both send first, each on one stream, wait for each other until the
/// deadline, as NCCL's would outside a group. `send_receive_on_stream` does both at once; or use a stream for each peer
/// and direction. Towards one peer, calls of one direction are made one after the other: on one stream, or on streams
/// that wait for each other.
class Messages {
 public:
  /// Collective over the team, which outlives this: other ranks have no part in it, nor memory for it.
  /// Throws invalid_argument when members give different or impossible options, no_resource when the heap is
  /// full, unavailable where a member's kernels do not reach another's memory.
  explicit Messages(Team& team, const MessageOptions& options = {});
  /// Collective. The calls must be over: the memory is freed.
  ~Messages();
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  /// For kernels (collectives/messages.hpp), by value.
  [[nodiscard]] const MessageChannel& channel() const;
  /// Its members: kernels that use the channel are launched with it.
  [[nodiscard]] Team& team() const;

  // A vector is a SymmetricArray, a std::span, or what a std::span is made from, of any trivially copyable type. A call
  // without a stream blocks until it is over (its source may be changed, its destination is there), and throws what it
  // ended with; with one it is asynchronous, in its order. All else is as of the call `..._on_stream` below.

  /// Sends a vector to `peer`.
  template <detail::Vector From>
  void send(From&& source, int peer, const MessageCall& call = {}) {
    const auto bytes = std::as_bytes(detail::span_of(source));
    detail::make_call(team(), call.stream,
                      [&] { send_on_stream(bytes.data(), bytes.size(), ElementType::uint8, peer, call); });
  }
  /// Receives a vector of as many bytes from `peer`.
  template <detail::Vector To>
  void receive(To&& destination, int peer, const MessageCall& call = {}) {
    const auto bytes = std::as_writable_bytes(detail::span_of(destination));
    detail::make_call(team(), call.stream,
                      [&] { receive_on_stream(bytes.data(), bytes.size(), ElementType::uint8, peer, call); });
  }
  /// Both at once.
  template <detail::Vector From, detail::Vector To>
  void send_receive(From&& source, int to_peer, To&& destination, int from_peer, const MessageCall& call = {}) {
    const auto out = std::as_bytes(detail::span_of(source));
    const auto in = std::as_writable_bytes(detail::span_of(destination));
    detail::make_call(team(), call.stream, [&] {
      send_receive_on_stream({out.data(), out.size(), to_peer}, {in.data(), in.size(), from_peer}, ElementType::uint8,
                             call);
    });
  }

  /// Sends `count` elements to `peer`, on a stream; asynchronous, in its order, as one kernel.
  ///   source  [count], aligned to its elements, in whatever memory this rank's kernels reach, unchanged until the
  ///           stream has passed the call
  /// Longer messages are stored straight into the destination if that is in the receiver's heap, or read from the
  /// source if that is in the sender's; otherwise they are copied through the channel's memory. Throws
  /// invalid_argument, before anything is touched, for a count, type, alignment, peer or number of blocks that does not
  /// work, and for a message to oneself that would wait for its receiver; failures of the call itself come with
  /// `World::synchronize`. Source: MPI 4.0, 3.2; seed 000, 2.4.5.
  void send_on_stream(const void* source, std::size_t count, ElementType type, int peer, const MessageCall& call = {});
  /// Receives `count` elements from `peer`, as `send_on_stream`.
  ///   destination  [count], the same
  void receive_on_stream(void* destination, std::size_t count, ElementType type, int peer,
                         const MessageCall& call = {});
  /// Both at once, as one kernel of twice the blocks: neighbours swap without a deadlock. The peers may differ, and
  /// may be this member. The two places do not overlap. Source: MPI 4.0, 3.10, MPI_Sendrecv.
  void send_receive_on_stream(const SentMessage& sent, const ReceivedMessage& received, ElementType type,
                              const MessageCall& call = {});

  /// Whether a message from `peer` waits to be received, so that a receive from it would not wait for its sender. Does
  /// not block. Receives from `peer` that this rank has started must be over.
  /// Throws invalid_argument for a peer that is not a member, unavailable where the channel lies in a GPU's memory.
  /// Source: MPI 4.0, 3.8.1, MPI_Iprobe.
  [[nodiscard]] bool probe(int peer) const;

  /// The number of blocks that `call` takes for a message of so many bytes.
  [[nodiscard]] MessageCall choice(std::size_t bytes, const MessageCall& call = {}) const;
  /// Whether such a message is sent eagerly.
  [[nodiscard]] bool is_eager(std::size_t bytes, const MessageCall& call = {}) const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace beeline
