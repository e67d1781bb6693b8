// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Messages in kernels: send and receive, on a session. How they travel is said in message_sender.hpp.
///
/// Between two members messages are matched in the order in which they are sent and received, without tags, as NCCL's.
/// A message is received as it is sent: in as many bytes, and by as many blocks.

#include "beeline/collectives/message_receiver.hpp"
#include "beeline/collectives/message_sender.hpp"

namespace beeline {

inline namespace BEELINE_CALLS {

/// Sends `bytes` from `source` to `peer`. Loops keep a `MessageSender(session, peer)` instead.
///   source  any local address; may be reused when every thread has returned with ok
/// Every thread of the session's group calls it, and gets the same status. Eager, it waits only while the receiver is
/// `depth` messages behind; longer messages wait for the receiver. After `timeout` the same call continues.
/// Returns ok, timeout, deadline, aborted; invalid_argument for a grid of more blocks than sessions.
/// Source: MPI 4.0, 3.2, MPI_Send.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status send(const MessageSession<Group>& session, const void* source,
                                              std::size_t bytes, std::uint32_t peer,
                                              const MessageSessionCall& call = {}) {
  return MessageSender<Group>(session, peer).send(source, bytes, call);
}

/// Receives the next message of `peer`, which is one of `bytes`, into `destination`. Loops keep a
/// `MessageReceiver(session, peer)` instead.
///   destination  any local address
/// Every thread of the session's group calls it, and gets the same status; with ok the message is visible to the group.
/// After `timeout` the same call continues. A message of another length, or in another number of slices, is refused:
/// the team is aborted, and the host's error names both.
/// Returns ok, timeout, deadline, aborted; invalid_argument for a message that is refused, and as `send`.
/// Source: MPI 4.0, 3.2, MPI_Recv.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status receive(const MessageSession<Group>& session, void* destination,
                                                 std::size_t bytes, std::uint32_t peer,
                                                 const MessageSessionCall& call = {}) {
  return MessageReceiver<Group>(session, peer).receive(destination, bytes, call);
}

}  // namespace BEELINE_CALLS

}  // namespace beeline
