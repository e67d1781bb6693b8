// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All-reduce by loads and stores between peers: each member reads its part from all, and writes the result to all.
/// Vectors that lie at the same place of every member's heap are used where they are; others go through the channel's
/// memory, chunk by chunk. Source: seed 000, 6.8.3 (work sharing), with reads in place of the first copy.

#include "beeline/collectives/words.hpp"
#include "beeline/device/put_get.hpp"

namespace beeline::detail {

/// Where a vector lies in its owner's slot; all ones for one that lies elsewhere.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint64_t place_in_slot(const Context& ctx, const void* vector) {
  const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(vector) - reinterpret_cast<std::uintptr_t>(ctx.range) -
                               (std::uint64_t{ctx.own_world_rank} << ctx.slot_shift);
  return offset >> ctx.slot_shift == 0 ? offset : ~std::uint64_t{0};
}

/// A round of packets in which every member tells all where its vectors lie; also a barrier that orders memory.
///   alike  set to whether all lie at the same places of their slots. Every member comes to the same answer: if one
///          differs, it sees that, and so does every other
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status compare_places(Lane<Group>& lane, const void* destination, const void* source,
                                                        Timeout timeout, bool& alike) {
  const Context& ctx = lane.context();
  const Group& group = lane.group();
  const std::uint64_t mine[2] = {place_in_slot(ctx, destination), place_in_slot(ctx, source)};
  bool is_new = false;
  if (const Status status = lane.enter(timeout, is_new); status != Status::ok) return status;
  group.sync();  // the rest of the group has done its work
  // Fences are dear, and one thread's covers what the others did before the group met: those that send and poll.
  if (group.thread_rank() < ctx.size) machine::fence_system();
  bool same = mine[0] != ~std::uint64_t{0} && mine[1] != ~std::uint64_t{0};
  Status status = Status::ok;
  for (std::uint32_t peer = group.thread_rank(); is_new && peer < ctx.size; peer += group.size())
    for (unsigned k = 0; k < 2; ++k) lane.send_word(peer, k, mine[k]);
  for (std::uint32_t peer = group.thread_rank(); peer < ctx.size && status == Status::ok; peer += group.size())
    for (unsigned k = 0; k < 2 && status == Status::ok; ++k) {
      std::uint64_t theirs[1] = {};
      status = lane.receive_words(peer, k, theirs, timeout);
      same = same && theirs[0] == mine[k];
    }
  if (group.thread_rank() < ctx.size) machine::fence_system();
  status = lane.finish(status);
  if (status == Status::ok) alike = !group.any(!same);
  return status;
}

/// Words of every member at the same place, combined in the order of ranks.
///   source  this member's; `stride` bytes from one of the `count` words to the next
template <class T, class Word, unsigned count>
BEELINE_HOST_DEVICE void reduce_words(const Context& ctx, const std::byte* source, std::size_t stride,
                                      Reduction reduction, Word (&result)[count]) {
  constexpr std::uint32_t batch = 4;  // peers whose loads overlap
  Partial<T, Word> partial[count];
  BEELINE_NO_UNROLL
  for (std::uint32_t first = 0; first < ctx.size; first += batch) {
    Word words[batch][count] = {};
    for (std::uint32_t k = 0; k < batch; ++k)
      if (first + k < ctx.size)
        for (unsigned i = 0; i < count; ++i) words[k][i] = load_vector<T, Word>(ctx.at(source, first + k) + i * stride);
    for (std::uint32_t k = 0; k < batch; ++k)
      if (first + k < ctx.size)
        for (unsigned i = 0; i < count; ++i)
          first + k == 0 ? partial[i].start(words[k][i]) : partial[i].combine(reduction, words[k][i]);
  }
  for (unsigned i = 0; i < count; ++i) result[i] = partial[i].finish(reduction, ctx.size);
}

/// `count` words of type Word: each read from all members, reduced, and written to all.
template <class T, class Word>
BEELINE_HOST_DEVICE void reduce_and_spread(const Context& ctx, ThreadShare threads, std::byte* destination,
                                           const std::byte* source, std::size_t count, Reduction reduction) {
  constexpr unsigned at_once = sizeof(Word) == 16 ? 2 : 1;
  const std::size_t stride = sizeof(Word) * threads.count;
  const auto spread = [&](std::size_t place, const Word& word) {
    for (std::uint32_t step = 0; step < ctx.size; ++step) {
      const std::uint32_t peer = ctx.rank + step < ctx.size ? ctx.rank + step : ctx.rank + step - ctx.size;
      store_vector<T>(ctx.at(destination, peer) + place * sizeof(Word), word);
    }
  };
  std::size_t i = threads.index;
  BEELINE_NO_UNROLL
  for (; i + (at_once - 1) * threads.count < count; i += at_once * threads.count) {
    Word result[at_once];
    reduce_words<T>(ctx, source + i * sizeof(Word), stride, reduction, result);
    for (unsigned k = 0; k < at_once; ++k) spread(i + k * threads.count, result[k]);
  }
  BEELINE_NO_UNROLL
  for (; i < count; i += threads.count) {
    Word result[1];
    reduce_words<T>(ctx, source + i * sizeof(Word), stride, reduction, result);
    spread(i, result[0]);
  }
}

/// This member's part of `count` elements, which lie at the same places of all members' slots.
template <class T, class Group>
BEELINE_HOST_DEVICE void reduce_own_share(const Lane<Group>& lane, T* destination, const T* source, std::size_t count,
                                          Reduction reduction) {
  const Context& ctx = lane.context();
  const ThreadShare threads{lane.group().thread_rank(), lane.group().size()};
  const Range mine = part_of(count, ctx.size, ctx.rank, elements_in_16<T>);
  auto* to = reinterpret_cast<std::byte*>(destination + mine.first);
  const auto* from = reinterpret_cast<const std::byte*>(source + mine.first);
  const bool aligned = ((reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) & 15u) == 0;
  const std::size_t whole = aligned ? mine.count / elements_in_16<T> : 0, rest = whole * elements_in_16<T>;
  reduce_and_spread<T, machine::Word16>(ctx, threads, to, from, whole, reduction);
  reduce_and_spread<T, T>(ctx, threads, to + rest * sizeof(T), from + rest * sizeof(T), mine.count - rest, reduction);
}

/// How far a call has come, for the case that its time-out ends it.
enum PeerStage : std::uint32_t { compare = 0, copy_in, reduce, copy_out, end_in_place };

/// Vectors that do not lie alike: in through one half of the channel's memory, out through the other.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status allreduce_staged(Lane<Group>& lane, T* destination, const T* source,
                                                          std::size_t count, Reduction reduction, Timeout timeout) {
  const Group& group = lane.group();
  const std::size_t most = lane.staging_bytes() / sizeof(T);
  T* const in = reinterpret_cast<T*>(lane.staging(0));
  T* const out = reinterpret_cast<T*>(lane.staging(1));
  for (std::size_t done = lane.offset(); done < count;) {
    const std::size_t some = count - done < most ? count - done : most;
    if (lane.stage() == PeerStage::copy_in) {
      copy_bytes(group, in, source + done, some * sizeof(T));
      lane.set_stage(PeerStage::reduce);
    }
    if (lane.stage() == PeerStage::reduce) {
      if (const Status status = lane.barrier(Order::memory, timeout); status != Status::ok) return status;
      reduce_own_share(lane, out, in, some, reduction);
      lane.set_stage(PeerStage::copy_out);
    }
    if (const Status status = lane.barrier(Order::memory, timeout); status != Status::ok) return status;
    copy_bytes(group, destination + done, out, some * sizeof(T));
    done += some;
    lane.set_offset(done);
    lane.set_stage(PeerStage::copy_in);
  }
  return Status::ok;
}

/// All-reduce of any count; see the file.
template <class T, class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status allreduce_two_shot(Lane<Group>& lane, T* destination, const T* source,
                                                            std::size_t count, Reduction reduction, Timeout timeout) {
  if (lane.stage() == PeerStage::compare) {
    bool alike = false;
    if (const Status status = compare_places(lane, destination, source, timeout, alike); status != Status::ok)
      return status;
    lane.note_staged(!alike);
    lane.set_stage(alike ? PeerStage::end_in_place : PeerStage::copy_in);
    if (alike) reduce_own_share(lane, destination, source, count, reduction);
  }
  const Status status = lane.stage() == PeerStage::end_in_place
                            ? lane.barrier(Order::memory, timeout)
                            : allreduce_staged(lane, destination, source, count, reduction, timeout);
  if (status != Status::ok) return status;
  lane.group().sync();  // the whole result is there
  lane.set_stage(PeerStage::compare);
  lane.set_offset(0);
  return status;
}

}  // namespace beeline::detail
