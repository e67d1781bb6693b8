// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Messages in kernels of a team with members on several nodes: in chunks over the session's pair links, which calls of
/// the host use, too. All of this is out of line, so that it takes no registers from messages by loads and stores.

#include "beeline/collectives/impl/message_link.hpp"
#include "beeline/collectives/impl/pair_links.hpp"

namespace beeline::detail {

/// Compares an arrived chunk with the awaited message. If they differ, records it and aborts the team.
///   header, bytes  of the awaited slice
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE inline Status check_message(const PairLinks& links, std::uint32_t peer,
                                                                           const ChunkHead& chunk, std::uint64_t header,
                                                                           std::size_t bytes) {
  if (is_same_message(chunk.packed, header) && chunk.total == bytes) return Status::ok;
  const Awaited awaited{Operation::receive, peer, links.awaited_number(peer), header};
  return give_up(links.context(), awaited, chunk.packed, 0, Status::invalid_argument);
}

/// One thread's part in a chunk: waits for a free box, or for the chunk.
template <class Byte>
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE Status await_box(const PairLinks& links, std::uint32_t peer,
                                                                const MessageSlice<Byte>& slice, Timeout timeout) {
  const Context& ctx = links.context();
  if constexpr (std::is_const_v<Byte>) return links.await_room(ctx, Operation::send, peer, nullptr, timeout);
  const Status status = links.await_chunk(ctx, Operation::receive, peer, nullptr, timeout);
  if (status != Status::ok) return status;
  return check_message(links, peer, *links.arriving(peer), slice.header, slice.bytes);
}
/// One thread's part in a chunk of `bytes`: puts it, or frees its box.
template <class Byte>
[[nodiscard]] BEELINE_HOST_DEVICE Status end_box(const PairLinks& links, std::uint32_t peer,
                                                 const MessageSlice<Byte>& slice, std::size_t bytes) {
  if constexpr (!std::is_const_v<Byte>) return links.release(peer);
  const ChunkHead head{slice.header, 0, slice.bytes, bytes, links.context().rank};
  return links.put(peer, head, links.place_for(peer));
}

/// Sends (const bytes) or receives a slice. If a time-out interrupts it, the session's state says where the next call
/// continues. Every thread of the group calls it.
template <class Group, class Byte>
[[nodiscard]] BEELINE_COLD BEELINE_HOST_DEVICE Status move_by_chunks(Group group, MessageLink link,
                                                                     MessageSlice<Byte> slice, Timeout timeout) {
  constexpr bool sends = std::is_const_v<Byte>;
  const PairLinks links(link.ctx, link.channel.across[link.session]);
  std::uint64_t& kept = sends ? link.own_state()->out.done : link.own_state()->in.done;
  const bool is_first = group.thread_rank() == 0;
  group.sync();  // the state of the group's earlier calls is visible; the rest of the group has written the source
  std::size_t done = kept;
  do {  // an empty slice is one chunk, too
    Status status = agree(group, is_first ? await_box(links, link.peer, slice, timeout) : Status::ok);
    if (status != Status::ok) return status;
    const std::size_t rest = slice.bytes - done, most = links.channel().chunk_bytes();
    const std::size_t bytes = !sends ? links.arriving(link.peer)->bytes : rest < most ? rest : most;
    if constexpr (sends)
      copy_bytes(OutOfLine<Group>{group}, links.place_for(link.peer), slice.data + done, bytes);
    else
      copy_bytes(OutOfLine<Group>{group}, slice.data + done, links.arriving(link.peer) + 1, bytes);
    done += bytes;
    group.sync();
    if (is_first) {
      status = end_box(links, link.peer, slice, bytes);
      kept = done < slice.bytes ? done : 0;
    }
    status = agree(group, status);
    if (status != Status::ok) return status;
  } while (done < slice.bytes);
  return Status::ok;
}

}  // namespace beeline::detail
