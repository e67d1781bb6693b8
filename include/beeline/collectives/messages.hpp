// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Messages in kernels: send and receive, on a session. message_sender.hpp describes the protocols.
///
/// Between two members, messages are matched in the order of the calls, as in NCCL. A receive has the same numbers of
/// bytes and of blocks and the same tag as its send.

#include "beeline/collectives/message_receiver.hpp"
#include "beeline/collectives/message_sender.hpp"

namespace beeline {

inline namespace BEELINE_CALLS {

/// Sends `bytes` from `source` to `peer`. Loops keep a `MessageSender(session, peer)` instead.
///   source  [bytes] any local address and alignment; may be reused when every thread has returned with ok
/// Every thread of the session's group calls it, and gets the same status. An eager message waits only while `depth`
/// earlier messages have not been received; a longer message waits for the receiver. After `timeout` the same call
/// continues.
/// Returns ok, timeout, deadline, aborted; invalid_argument for a grid with more blocks than sessions.
/// Source: MPI 4.0, 3.2, MPI_Send.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status send(const MessageSession<Group>& session, const void* source,
                                              std::size_t bytes, std::uint32_t peer,
                                              const MessageSessionCall& call = {}) {
  return MessageSender<Group>(session, peer).send(source, bytes, call);
}

/// Receives the next message from `peer`, whose length is `bytes`, into `destination`. Blocking. Loops keep a
/// `MessageReceiver(session, peer)` instead.
///   destination  [bytes] any local address and alignment
/// Every thread of the session's group calls it, and gets the same status; after ok the message is visible to the
/// group. After `timeout` the same call continues. A message with another length or number of slices is refused: the
/// team is aborted, and the host's error names both values.
/// Returns ok, timeout, deadline, aborted; invalid_argument for a refused message, and as `send`.
/// Source: MPI 4.0, 3.2, MPI_Recv.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status receive(const MessageSession<Group>& session, void* destination,
                                                 std::size_t bytes, std::uint32_t peer,
                                                 const MessageSessionCall& call = {}) {
  return MessageReceiver<Group>(session, peer).receive(destination, bytes, call);
}

}  // namespace BEELINE_CALLS

}  // namespace beeline
