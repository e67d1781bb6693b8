// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Triggers (control `triggered`): the host arms operations for a tag in advance. A kernel whose data are ready
/// increments the tag's count, and goes on. An operation starts when its tag's count reaches its threshold. `Triggers`
/// (host/triggers.hpp) makes the tags and arms the operations; docs/control.md says when to use which control.
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

/// The tags of a `Triggers` object. Kernels take this structure by value. Any thread may trigger any tag.
struct TriggerChannel {
  CommandQueuesView queues;  ///< tag t uses queue(t); empty if streams wait for the counts
  std::uint64_t* counters;   ///< [tags] if streams wait, in memory of the device that triggers; otherwise nullptr
  std::uint32_t tags;        ///< 0 to tags - 1
};

namespace detail {

/// Increments the counter for which a stream waits, with release order towards the driver or the CPU thread that polls
/// it. Every thread calls it.
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

/// Increments the count of `tag`. Operations that start then see all earlier writes of the group.
///   timeout  limit of the wait for a free cell in the tag's queue
/// Every thread of `group` calls it, with the same arguments; the group counts once. Does not wait for the operations.
/// Completion: `quiet(group, ctx, channel, tag)`, or a signal that was armed with the operation.
/// Ordering: operations of a tag start in the order of their thresholds, and with equal thresholds in the order in
/// which they were armed. They take effect in this order at each peer.
/// Returns ok; timeout if the queue had no free cell in time: nothing was counted, and the call may be repeated;
/// invalid_argument for a tag that does not exist (refused: see access.hpp); deadline if the engine takes no more
/// commands; aborted; unreachable for CPU threads of a GPU rank, which use `Triggers::trigger`. A tag without armed
/// operations is counted, too: an operation that is armed later starts at once if the count has reached its threshold.
/// A count that stays above the highest threshold ever armed for its tag until the deadline aborts the team.
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

/// Remote completion: blocks until the triggers posted for `tag` before are counted, and the operations that they have
/// started are complete. Every thread of `group` calls it. Returns as `quiet` of the tag's queue (post.hpp):
/// invalid_argument if the engine has ever refused one of the queue's triggers or operations; unavailable if streams
/// wait (TriggeredBy::stream): use signals there.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status quiet(const Group& group, const Context& ctx, const TriggerChannel& channel,
                                               std::uint32_t tag, Timeout timeout = Timeout::none()) {
  if (channel.counters != nullptr) return Status::unavailable;
  return quiet(group, ctx, channel.queues.queue(tag), timeout);
}

}  // namespace beeline
