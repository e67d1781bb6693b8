// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The address exchange, the round before members access each other's memory: each member sends each peer the offsets
/// of its vectors.

#include "beeline/collectives/session.hpp"

namespace beeline::detail {

/// The result of `place_in_slot` for an address outside this rank's slot.
inline constexpr std::uint64_t no_place = ~std::uint64_t{0};

/// The start of this rank's slot.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::byte* own_slot(const Context& ctx) {
  return ctx.range + (std::size_t{ctx.own_world_rank} << ctx.slot_shift);
}

/// The offset of a vector in this rank's slot.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint64_t place_in_slot(const Context& ctx, const void* vector) {
  const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(vector) - reinterpret_cast<std::uintptr_t>(ctx.range) -
                               (std::uint64_t{ctx.own_world_rank} << ctx.slot_shift);
  return offset >> ctx.slot_shift == 0 ? offset : no_place;
}

/// Sends every member, this member included, `count` words in the session's current round of packets. Earlier writes of
/// the group are visible to receivers of the words.
///   tell  called with a peer and the index of a word, returns the word for that peer
template <class Group, class Tell>
BEELINE_INLINE BEELINE_HOST_DEVICE void tell_all(Session<Group>& session, std::uint32_t count, const Tell& tell) {
  const Group& group = session.group();
  const std::uint32_t words = session.context().size * count;
  group.sync();  // the rest of the group has done its work
  // A fence is costly, and also covers writes of other threads before `group.sync()`: so only threads that send make a
  // fence.
  if (session.has_worked() && group.thread_rank() < words) machine::fence_acquire_release();
  for (std::uint32_t i = group.thread_rank(); i < words; i += group.size())
    session.send_word(i / count, i % count, tell(i / count, i % count));
}

/// Receives the words of every member. Returns this thread's status. Before the members' memory is accessed, call
/// `acquire_words`, too.
///   hear  called with a peer, the index of a word and the word, returns a status; each word is received by one thread
template <class Group, class Hear>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status hear_all(Session<Group>& session, std::uint32_t count,
                                                                 Timeout timeout, const Hear& hear) {
  const Group& group = session.group();
  Status status = Status::ok;
  for (std::uint32_t i = group.thread_rank(); i < session.context().size * count && status == Status::ok;
       i += group.size()) {
    std::uint64_t theirs[1] = {};
    status = session.receive_words(i / count, i % count, theirs, timeout);
    if (status == Status::ok) status = hear(i / count, i % count, theirs[0]);
  }
  return status;
}

/// Makes the members' writes before their words visible to the group after its next `sync()`. Called by the threads
/// that have received the words; after the end of the round any threads may call it.
template <class Group>
BEELINE_INLINE BEELINE_HOST_DEVICE void acquire_words(const Session<Group>& session, std::uint32_t count) {
  for (std::uint32_t i = session.group().thread_rank(); i < session.context().size * count; i += session.group().size())
    if (i % count == 0) session.acquire_word(i / count, 0);
}

/// A round of packets in which every member sends every member, itself included, `count` words; also a barrier that
/// orders memory.
template <class Group, class Tell, class Hear>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status handshake(Session<Group>& session, std::uint32_t count,
                                                                  Timeout timeout, const Tell& tell, const Hear& hear) {
  bool is_new = false;
  if (const Status status = session.enter(timeout, is_new); status != Status::ok) return status;
  if (is_new) tell_all(session, count, tell);
  const Status status = hear_all(session, count, timeout, hear);
  acquire_words(session, count);
  return session.finish(status);
}

/// A handshake in which the members compare the offsets of their vectors.
///   symmetric  set to whether all vectors are symmetric, with the same result on every member: if the offsets of one
///              member differ, this member and every other member detect it
template <class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status compare_places(Session<Group>& session, const void* destination,
                                                                       const void* source, Timeout timeout,
                                                                       bool& symmetric) {
  const std::uint64_t to = place_in_slot(session.context(), destination),
                      from = place_in_slot(session.context(), source);
  bool same = to != no_place && from != no_place;
  const auto tell = [&](std::uint32_t, std::uint32_t k) { return k == 0 ? to : from; };
  const auto hear = [&](std::uint32_t, std::uint32_t k, std::uint64_t theirs) {
    same = same && theirs == (k == 0 ? to : from);
    return Status::ok;
  };
  const Status status = handshake(session, 2, timeout, tell, hear);
  if (status == Status::ok) symmetric = !session.group().any(!same);
  return status;
}

/// As `compare_places`; `how` becomes in_place if all vectors are symmetric.
template <class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status compare_alike(Session<Group>& session, const void* destination,
                                                                      const void* source, Timeout timeout,
                                                                      Transfer& how) {
  bool symmetric = false;
  const Status status = compare_places(session, destination, source, timeout, symmetric);
  how = symmetric ? Transfer::in_place : Transfer::staged;
  return status;
}

}  // namespace beeline::detail
