// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The round with which members begin to read or write each other's memory: each tells each where its vectors lie.

#include "beeline/collectives/lane.hpp"

namespace beeline::detail {

/// What `place_in_slot` says of an address outside its owner's slot.
inline constexpr std::uint64_t no_place = ~std::uint64_t{0};

/// Where a vector lies in its owner's slot.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint64_t place_in_slot(const Context& ctx, const void* vector) {
  const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(vector) - reinterpret_cast<std::uintptr_t>(ctx.range) -
                               (std::uint64_t{ctx.own_world_rank} << ctx.slot_shift);
  return offset >> ctx.slot_shift == 0 ? offset : no_place;
}

/// A round of packets in which every member tells every member, itself included, `count` words; also a barrier that
/// orders memory.
///   tell  gets a peer and the number of a word, returns what that peer is told
///   hear  gets the same and what the peer has told, returns a status; one thread hears each word
template <class Group, class Tell, class Hear>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status meet(Lane<Group>& lane, std::uint32_t count, Timeout timeout,
                                                             const Tell& tell, const Hear& hear) {
  const Context& ctx = lane.context();
  const Group& group = lane.group();
  bool is_new = false;
  if (const Status status = lane.enter(timeout, is_new); status != Status::ok) return status;
  group.sync();  // the rest of the group has done its work
  // A fence is dear, and covers what the others did before the group met: only threads that send have one.
  const std::uint32_t words = ctx.size * count;
  if (lane.has_worked() && group.thread_rank() < words) machine::fence_acquire_release();
  for (std::uint32_t i = group.thread_rank(); is_new && i < words; i += group.size())
    lane.send_word(i / count, i % count, tell(i / count, i % count));
  Status status = Status::ok;
  for (std::uint32_t i = group.thread_rank(); i < words && status == Status::ok; i += group.size()) {
    std::uint64_t theirs[1] = {};
    status = lane.receive_words(i / count, i % count, theirs, timeout);
    lane.acquire_word(i / count, i % count);
    if (status == Status::ok) status = hear(i / count, i % count, theirs[0]);
  }
  return lane.finish(status);
}

/// A meeting in which the members compare where their vectors lie.
///   alike  set to whether all lie at the same places of their slots. Every member comes to the same answer: if one
///          differs, it sees that, and so does every other
template <class Group>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status compare_places(Lane<Group>& lane, const void* destination,
                                                                       const void* source, Timeout timeout,
                                                                       bool& alike) {
  const std::uint64_t to = place_in_slot(lane.context(), destination), from = place_in_slot(lane.context(), source);
  bool same = to != no_place && from != no_place;
  const auto tell = [&](std::uint32_t, std::uint32_t k) { return k == 0 ? to : from; };
  const auto hear = [&](std::uint32_t, std::uint32_t k, std::uint64_t theirs) {
    same = same && theirs == (k == 0 ? to : from);
    return Status::ok;
  };
  const Status status = meet(lane, 2, timeout, tell, hear);
  if (status == Status::ok) alike = !lane.group().any(!same);
  return status;
}

}  // namespace beeline::detail
