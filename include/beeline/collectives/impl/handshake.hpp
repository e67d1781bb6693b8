// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The round with which members begin to read or write each other's memory: each tells each where its vectors lie.

#include "beeline/collectives/session.hpp"

namespace beeline::detail {

/// What `place_in_slot` says of an address outside its owner's slot.
inline constexpr std::uint64_t no_place = ~std::uint64_t{0};

/// Where this rank's slot begins.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::byte* own_slot(const Context& ctx) {
  return ctx.range + (std::size_t{ctx.own_world_rank} << ctx.slot_shift);
}

/// Where a vector lies in its owner's slot.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint64_t place_in_slot(const Context& ctx, const void* vector) {
  const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(vector) - reinterpret_cast<std::uintptr_t>(ctx.range) -
                               (std::uint64_t{ctx.own_world_rank} << ctx.slot_shift);
  return offset >> ctx.slot_shift == 0 ? offset : no_place;
}

/// Tells every member, this one included, `count` words in the round of packets that the session has entered. What the
/// group did before is visible to receivers of the words.
///   tell  gets a peer and the number of a word, returns what that peer is told
template <class Group, class Tell>
BEELINE_INLINE BEELINE_HOST_DEVICE void tell_all(Session<Group>& session, std::uint32_t count, const Tell& tell) {
  const Group& group = session.group();
  const std::uint32_t words = session.context().size * count;
  group.sync();  // the rest of the group has done its work
  // A fence is dear, and covers what the others did before the group met: only threads that send have one.
  if (session.has_worked() && group.thread_rank() < words) machine::fence_acquire_release();
  for (std::uint32_t i = group.thread_rank(); i < words; i += group.size())
    session.send_word(i / count, i % count, tell(i / count, i % count));
}

/// Hears the words of every member. Returns this thread's status. To use the members' memory takes `acquire_words`,
/// too.
///   hear  gets a peer, the number of a word and what the peer has told, returns a status; one thread hears each word
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

/// What the members did before they told their words is visible to the group when it has met. The threads that have
/// heard the words call it; after the round's end it may be others.
template <class Group>
BEELINE_INLINE BEELINE_HOST_DEVICE void acquire_words(const Session<Group>& session, std::uint32_t count) {
  for (std::uint32_t i = session.group().thread_rank(); i < session.context().size * count; i += session.group().size())
    if (i % count == 0) session.acquire_word(i / count, 0);
}

/// A round of packets in which every member tells every member, itself included, `count` words; also a barrier that
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

/// A handshake in which the members compare where their vectors lie.
///   symmetric  set to whether all lie at the same places of their slots. Every member comes to the same answer: if one
///          differs, it sees that, and so does every other
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

/// The same; `how` becomes in_place where all lie at the same places.
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
