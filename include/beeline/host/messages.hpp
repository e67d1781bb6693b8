// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Messages from one member of a team to another: the memory that they need, the channel for kernels, and the calls on
/// streams.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "beeline/collectives/elements.hpp"
#include "beeline/collectives/message_channel.hpp"
#include "beeline/host/impl/typed_vectors.hpp"
#include "beeline/host/team.hpp"
#include "beeline/transport/stream.hpp"

namespace beeline {

/// Sizes of a channel, the same on all ranks. 0: chosen by the kind and number of ranks.
struct MessageOptions {
  unsigned sessions = 0;            ///< largest number of blocks of a message
  std::size_t eager_bytes = 0;      ///< longest message that is sent eagerly; tune this value first
  std::uint32_t depth = 0;          ///< messages in flight to one receiver, a power of two, at least 2
  std::size_t chunk_bytes = 0;      ///< size of a chunk, for vectors outside the heaps; a channel has 4 chunks for each
                                    ///< session and sender
  std::uint32_t first_message = 0;  ///< number of the first message, for tests

  bool operator==(const MessageOptions&) const = default;
};

/// How one call is to be made.
struct MessageCall {
  Stream* stream = nullptr;  ///< nullptr: in calls `..._on_stream` the rank's default stream; other calls then block
  unsigned blocks = 0;       ///< the same at sender and receiver; 0: by size
  std::uint32_t tag = 0;     ///< the same at sender and receiver, up to `most_message_tag`
};

/// The message that a member sends in `send_receive_on_stream`.
struct SentMessage {
  const void* source;
  std::size_t count;
  int peer;
};
/// The message that the member receives in the same call, in elements of the same type.
struct ReceivedMessage {
  void* destination;
  std::size_t count;
  int peer;
};

/// A channel for messages between the members of a team, and the host's calls on it. These are two-sided calls on
/// streams. Between GPUs of a node each call is one kernel, and needs no CPU while it runs.
///
/// Between two members, messages are matched in the order of the calls. A receive has the same number of bytes and of
/// blocks, the same tag and the same element type as its send; `uint8` matches every type. A difference is detected,
/// and aborts the team with an error that names both values.
///
/// Short messages are *eager*: the sender stores them in memory of the receiver, and its stream continues. Longer
/// messages wait for the receiver (*rendezvous*). So two members that both send first, each on one stream, wait for
/// each other until the deadline, as in NCCL outside a group. To avoid that, use `send_receive_on_stream`, or one
/// stream for each peer and direction. Make the calls for one peer and direction one after the other: on one stream, or
/// on streams that wait for each other.
class Messages {
 public:
  /// Collective over the team, which must outlive this object; other ranks neither call it nor need memory for it.
  /// Throws invalid_argument if members pass different or invalid options, no_resource if the heap is full, unavailable
  /// if a member's kernels do not reach the memory of another member on the same node.
  explicit Messages(Team& team, const MessageOptions& options = {});
  /// Collective. All calls must have ended, since the memory is freed.
  ~Messages();
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  /// The channel for kernels (collectives/messages.hpp); pass it by value.
  [[nodiscard]] const MessageChannel& channel() const;
  /// The channel's team. Launch kernels that use the channel with this team.
  [[nodiscard]] Team& team() const;

  // A vector is a SymmetricArray, a std::span, or an object from which a std::span can be made, of any trivially
  // copyable type. A call without a stream blocks until it has ended: then its source may change, and its destination
  // is complete. It comes after the earlier work of the default stream, waits for no blocking call of another thread,
  // and throws its errors. A call with a stream is asynchronous, in the order of the stream. All else is the same as in
  // the corresponding call `..._on_stream` below.

  /// Sends a vector to `peer`.
  template <detail::Vector From>
  void send(From&& source, int peer, const MessageCall& call = {}) {
    const auto from = detail::span_of(source);
    constexpr ElementType type = message_type<decltype(from)>();
    detail::make_call(team(), call, [&](const MessageCall& how) {
      send_on_stream(from.data(), from.size_bytes() / bytes_of(type), type, peer, how);
    });
  }
  /// Receives a vector from `peer`, which sends the same number of bytes, in elements of the same type if the type is
  /// one of `ElementType`; `uint8` matches every type.
  template <detail::Vector To>
  void receive(To&& destination, int peer, const MessageCall& call = {}) {
    const auto to = detail::span_of(destination);
    constexpr ElementType type = message_type<decltype(to)>();
    detail::make_call(team(), call, [&](const MessageCall& how) {
      receive_on_stream(to.data(), to.size_bytes() / bytes_of(type), type, peer, how);
    });
  }
  /// Sends a vector to `to_peer`, and at the same time receives a vector from `from_peer`.
  template <detail::Vector From, detail::Vector To>
  void send_receive(From&& source, int to_peer, To&& destination, int from_peer, const MessageCall& call = {}) {
    const auto out = detail::span_of(source);
    const auto in = detail::span_of(destination);
    constexpr bool is_one_type = message_type<decltype(out)>() == message_type<decltype(in)>();
    constexpr ElementType type = is_one_type ? message_type<decltype(in)>() : ElementType::uint8;
    detail::make_call(team(), call, [&](const MessageCall& how) {
      send_receive_on_stream({out.data(), out.size_bytes() / bytes_of(type), to_peer},
                             {in.data(), in.size_bytes() / bytes_of(type), from_peer}, type, how);
    });
  }

  /// Sends `count` elements to `peer`, on a stream; asynchronous, in its order, as one kernel.
  ///   source  [count], aligned to its elements, in any memory that this rank's kernels reach, unchanged until the
  ///           stream has passed the call
  /// Rendezvous messages are stored directly into the destination if it is in the receiver's heap, or read directly
  /// from the source if it is in the sender's heap. Otherwise they are copied through the channel's memory.
  /// Throws invalid_argument, before anything is touched, for a count, type, alignment, peer or number of blocks that
  /// is not supported, and for a rendezvous message to the calling rank itself. `World::synchronize` throws failures of
  /// the call itself. Source: MPI 4.0, 3.2; seed 000, 2.4.5.
  void send_on_stream(const void* source, std::size_t count, ElementType type, int peer, const MessageCall& call = {});
  /// Receives `count` elements from `peer`. Otherwise the same as `send_on_stream`.
  ///   destination  [count], aligned to its elements
  void receive_on_stream(void* destination, std::size_t count, ElementType type, int peer,
                         const MessageCall& call = {});
  /// Sends and receives at the same time, as one kernel with twice the blocks, so that neighbours can swap without a
  /// deadlock. The two peers may differ, and may be the calling member. Source and destination must not overlap.
  /// Source: MPI 4.0, 3.10, MPI_Sendrecv.
  void send_receive_on_stream(const SentMessage& sent, const ReceivedMessage& received, ElementType type,
                              const MessageCall& call = {});

  /// Whether a message from `peer` has arrived, so that a receive would not wait for the sender. Does not block.
  /// Earlier receives from `peer` on this rank must have ended.
  /// Throws invalid_argument for a peer that is not a member, unavailable if the channel is in GPU memory. Source: MPI
  /// 4.0, 3.8.1, MPI_Iprobe.
  [[nodiscard]] bool probe(int peer) const;

  /// The number of blocks that a call with the options `call` would use for a message of `bytes`.
  [[nodiscard]] MessageCall choice(std::size_t bytes, const MessageCall& call = {}) const;
  /// Whether a message of `bytes` is sent eagerly.
  [[nodiscard]] bool is_eager(std::size_t bytes, const MessageCall& call = {}) const;

 private:
  /// Element type of messages of a span; `uint8` if the span's type is none of `ElementType`.
  template <class Span>
  [[nodiscard]] static constexpr ElementType message_type() {
    using T = std::remove_cv_t<typename std::remove_cv_t<Span>::element_type>;
    if constexpr (detail::Reducible<T>)
      return detail::ElementTraits<T>::type;
    else
      return ElementType::uint8;
  }
  class Implementation;
  detail::TeamOwned<Implementation> implementation_;
};

}  // namespace beeline
