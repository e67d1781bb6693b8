// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Triggers (control `triggered`): the host arms operations for a tag beforehand; a kernel that has their data ready
/// increments the tag's count, and goes on. An operation starts when its tag's count reaches its threshold. `Triggers`
/// (host/triggers.hpp) makes tags and arms; docs/control.md says when to take which control.
///
/// | level  | call                                                    | threshold |
/// |--------|---------------------------------------------------------|-----------|
/// | thread | `trigger(Thread{}, ctx, channel, base + thread)`        | 1         |
/// | block  | `trigger(grid.block(), ctx, channel, base + block)`     | 1         |
/// | kernel | `trigger(grid.block(), ctx, channel, tag)`, every block | blocks    |
///
/// Source: seed 003, GPU Triggered Networking (LeBeane et al., SC 2017): trigger levels, null entries; Portals 4,
/// PtlTriggeredPut; libfabric, fi_trigger.

#include <cstdint>

#include "beeline/control/post.hpp"

namespace beeline {

/// The tags that `Triggers` makes, for kernels, by value. Any thread may trigger any of them.
struct TriggerChannel {
  CommandChannel queues;    ///< a tag's is queue(tag); none where streams wait
  std::uint64_t* counters;  ///< [tags] where streams wait, in memory of the device that triggers; otherwise nullptr
  std::uint32_t tags;       ///< 0 to tags - 1
};

namespace detail {

/// Counts where a stream waits: the driver, or a CPU thread, sees it with all that came before. Every thread calls it.
template <class Group>
BEELINE_HOST_DEVICE Status count_trigger(const Group& group, const Context& ctx, std::uint64_t& counter) {
  group.sync();
  Status status = Status::ok;
  if (group.thread_rank() == 0) {
    const Reach word = reach_of_word(&counter);
    status = executor == DeviceKind::host && ctx.kind_of(ctx.rank) == DeviceKind::gpu
                 ? refuse(ctx, Operation::trigger, ctx.rank,
                          {CallFault::cpu_in_gpu_memory, word.bytes, address_bits(word)}, Status::unreachable)
                 : Status::ok;
    if (status == Status::ok) SystemAtomic<std::uint64_t>(counter).fetch_add(1, std::memory_order_release);
  }
  return agree(group, status);
}

}  // namespace detail

/// Increments the count of `tag`, after everything that the group did before: operations that fire then see it.
///   timeout  of the wait for a place in the tag's queue
/// Every thread of `group` calls it, with the same arguments; the group counts once. Does not wait for the operations.
/// Completion: `quiet(group, ctx, channel, tag)`, or a signal that was armed with the operation.
/// Ordering: operations of a tag start in the order of their thresholds, those of a threshold as they were armed, and
/// take effect in this order towards each peer.
/// Returns ok; timeout when the queue had no place until then: nothing was counted, and the call may be repeated;
/// invalid_argument for a tag that does not exist (refused: see access.hpp); deadline where the engine takes no more
/// commands, and aborted; unreachable for CPU threads of a GPU rank, which have `Triggers::trigger`.
/// A trigger of a tag for which nothing is armed counts too: what is armed later, with a threshold that the count has
/// reached, starts at once. A count that is above the tag's highest armed threshold at the deadline is an error of the
/// team.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status trigger(const Group& group, const Context& ctx, const TriggerChannel& channel,
                                                 std::uint32_t tag, Timeout timeout = Timeout::none()) {
  if (tag >= channel.tags) [[unlikely]] {
    if (group.thread_rank() == 0)
      static_cast<void>(detail::refuse(ctx, Operation::trigger, ctx.rank, {CallFault::no_tag, channel.tags, tag},
                                       Status::invalid_argument));
    return Status::invalid_argument;
  }
  if (channel.counters != nullptr) return detail::count_trigger(group, ctx, channel.counters[tag]);
  return detail::post(group, ctx, channel.queues.queue(tag), timeout, [&] {
    const detail::Request request{Operation::trigger, Verb::trigger, 0, 0, 0, ctx.rank};
    const auto* const once = reinterpret_cast<const void*>(std::uintptr_t{1});
    return detail::CommandFields{request, ctx.own_world_rank, tag, {once, 0, 0, 0, 0}};
  });
}

/// Remote completion: the triggers that were posted for `tag` before are counted, and what they fired is in place.
/// Every thread of `group` calls it. Returns as `quiet` of the tag's queue (post.hpp): invalid_argument where the
/// engine has refused one of the queue's triggers or operations, ever; unavailable where streams wait
/// (TriggeredBy::stream): there signals tell.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status quiet(const Group& group, const Context& ctx, const TriggerChannel& channel,
                                               std::uint32_t tag, Timeout timeout = Timeout::none()) {
  if (channel.counters != nullptr) return Status::unavailable;
  return quiet(group, ctx, channel.queues.queue(tag), timeout);
}

}  // namespace beeline
