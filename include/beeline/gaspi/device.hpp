// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One-sided communication of GASPI in kernels: writes between segments, and notifications. All threads of a group call
/// a function with the same arguments: on a GPU a `Block` (also a `Warp` or one `Thread`), on a host rank a `HostTeam`
/// or a `Thread`.
///
/// **Queues.** Operations of one queue to one rank take effect in their order; a notification is visible after the
/// writes that the queue was given before it. Any block may use any queue at any time, without a lock: blocks that
/// share a queue have no order among each other unless they synchronize, as with the queues of device/put_get.hpp.
/// `wait` is local completion.
///
/// **Flags.** A notification is a flag of its segment: 0, or the value that was set last. Flags lie in host memory,
/// unless the segment was created with flags in device memory. Kernels and CPU threads set and wait for both kinds
/// (CPU threads set flags on a GPU by a stream). They are reset where they lie: flags in host memory by CPU threads
/// (`gaspi_notify_reset`), flags in device memory by kernels. A kernel cannot reset a flag in host memory, since its
/// read-modify-write there excludes neither stores nor exchanges of CPUs: a notification between the read and the write
/// would be lost. So segments whose kernels wait for notifications have their flags in device memory, where a kernel
/// also polls them faster.
///
/// **Errors.** A call returns invalid_argument for a segment, rank, queue or notification that does not exist, a value
/// of 0, and a range outside the part at either end; unreachable if neither loads and stores nor an engine of this rank
/// reach the memory, as on host ranks for GPU memory of their node, and on GPUs for memory of another process that has
/// not been pinned. Then nothing was touched. Unlike refusals of other device operations these do not abort the world,
/// and the host does not throw: the status is the only report. If an engine carries operations to another node, also
/// deadline or aborted.
///
/// **Waits** end after their time-out, when the world is aborted (a rank has failed), or with `deadline` shortly before
/// the context's deadline; neither of them aborts the world.
///
/// Source: seed 000, sections 5.7 and 4.2; GASPI 17.1, gaspi_write_notify, gaspi_notify_waitsome.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/device/put_get.hpp"
#include "beeline/gaspi/endpoint.hpp"
#include "beeline/gaspi/impl/notification_scan.hpp"

namespace beeline::gaspi {

namespace detail {

/// The index of the part of `rank` of a segment in the table; `KnownEntry::none` if segment or rank is out of range.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint32_t index_of(const EndpointView& endpoint, std::uint32_t segment,
                                                                std::uint32_t rank) {
  const std::uint32_t ranks = endpoint.context.size;
  const bool exists = (segment < endpoint.table.segments) & (rank < ranks);
  return exists ? segment * ranks + rank : KnownEntry::none;
}

/// The part at an index; of 0 bytes for `KnownEntry::none`. An entry is read in any case, so that the load waits for no
/// branch, and the loads of two entries run at the same time.
[[nodiscard]] BEELINE_HOST_DEVICE inline SegmentEntry load_entry(const EndpointView& endpoint, std::uint32_t index) {
  const bool exists = index != KnownEntry::none;
  SegmentEntry entry = endpoint.table.entries[exists ? index : 0];
  entry.bytes = exists ? entry.bytes : 0;
  return entry;
}

/// The part of `rank` of a segment; of 0 bytes if segment or rank is out of range.
///   known  of `endpoint`
[[nodiscard]] BEELINE_HOST_DEVICE inline SegmentEntry entry_of(const EndpointView& endpoint, KnownEntry& known,
                                                               std::uint32_t segment, std::uint32_t rank) {
  const std::uint32_t index = index_of(endpoint, segment, rank);
  if constexpr (::beeline::detail::executor == DeviceKind::host) return load_entry(endpoint, index);
  if (known.index != index) known = {index, load_entry(endpoint, index)};
  return known.entry;
}
/// The part of the calling rank on which it waits, likewise.
[[nodiscard]] BEELINE_HOST_DEVICE inline SegmentEntry own_entry_of(const EndpointView& endpoint,
                                                                   std::uint32_t segment) {
  return entry_of(endpoint, endpoint.awaited, segment, endpoint.context.rank);
}

/// The parts at both ends of a write.
struct Ends {
  SegmentEntry from, to;
};
[[nodiscard]] BEELINE_HOST_DEVICE inline Ends ends_of(const EndpointView& endpoint, std::uint32_t source,
                                                      std::uint32_t rank, std::uint32_t destination) {
  const std::uint32_t from = index_of(endpoint, source, endpoint.context.rank);
  const std::uint32_t to = index_of(endpoint, destination, rank);
  if constexpr (::beeline::detail::executor == DeviceKind::host)
    return {load_entry(endpoint, from), load_entry(endpoint, to)};
  // One branch for both: see `load_entry`.
  if ((endpoint.source.index != from) | (endpoint.destination.index != to)) {
    const SegmentEntry first = load_entry(endpoint, from), second = load_entry(endpoint, to);
    endpoint.source = {from, first}, endpoint.destination = {to, second};
  }
  return {endpoint.source.entry, endpoint.destination.entry};
}

/// Whether a part holds a range. Evaluates everything, without a branch.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool holds_range(const SegmentEntry& part, std::uint64_t offset,
                                                          std::uint64_t bytes) {
  return (part.bytes != 0) & (offset <= part.bytes) & (bytes <= part.bytes - offset);
}

/// Whether kernels have an address of a part. The address is tested so that it is loaded together with the rest of the
/// entry.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool is_addressed(const SegmentEntry& part) {
  return (part.access != PartAccess::none) & (part.data != nullptr);
}

/// `ok` if operations on the symmetric address `target` at `rank` are carried out, and not refused.
[[nodiscard]] BEELINE_HOST_DEVICE inline Status check_reach(const Context& ctx, const void* target,
                                                            std::uint32_t rank) {
  if constexpr (::beeline::detail::executor == DeviceKind::gpu)
    if (ctx.has_routes == 0) [[likely]]
      return Status::ok;
  const bool is_reached = ctx.access_to(rank).access == PeerAccess::engine || has_loads_and_stores(ctx, target, rank);
  return is_reached ? Status::ok : Status::unreachable;
}

/// A write with both ends checked.
struct Write {
  Status status;
  std::byte* destination;
  const std::byte* source;
  std::uint64_t* flags;  ///< of the destination's part
  bool in_place;         ///< see `PartAccess`
};

[[nodiscard]] BEELINE_HOST_DEVICE inline Write checked_write(const EndpointView& endpoint, const SegmentOffset& source,
                                                             std::uint32_t rank, const SegmentOffset& destination,
                                                             std::uint64_t bytes, std::uint32_t queue) {
  const auto [from, to] = ends_of(endpoint, source.segment, rank, destination.segment);
  // One branch for both entries: see `load_entry`.
  const bool is_valid = holds_range(from, source.bytes, bytes) & holds_range(to, destination.bytes, bytes) &
                        (queue < endpoint.table.queues);
  const bool is_reached = is_addressed(from) & is_addressed(to);
  if (!(is_valid & is_reached)) [[unlikely]]
    return {is_valid ? Status::unreachable : Status::invalid_argument, nullptr, nullptr, nullptr, false};
  std::byte* const target = to.data + destination.bytes;
  const bool in_place = to.access == PartAccess::in_place;
  const Status status = in_place ? Status::ok : check_reach(endpoint.context, target, rank);
  return {status, target, from.data + source.bytes, to.flags, in_place};
}

/// Whether a notification exists, and may be sent to flags of `rank`.
[[nodiscard]] BEELINE_HOST_DEVICE inline Status check_notification(const EndpointView& endpoint,
                                                                   const std::uint64_t* flags, std::uint32_t rank,
                                                                   const Notification& notification) {
  if (flags == nullptr || notification.id >= endpoint.table.notifications || notification.value == 0)
    return Status::invalid_argument;
  return check_reach(endpoint.context, flags + notification.id, rank);
}

}  // namespace detail

inline namespace BEELINE_CALLS {

/// Copies `bytes` from `source` in this rank's part of a segment to `destination` in the part of `rank`.
///   source       reusable after `wait` for the queue
///   destination  must not overlap the source
///   queue        less than `EndpointTable::queues`
/// Every thread of `group` calls it. Does not block. Completion: a thread at `rank` that has acquired a later
/// notification of this queue sees the data. See Errors at the top of this file.
/// Speed: 16-byte accesses if both addresses are equal modulo 16.
/// Source: seed 000, section 5.7, gpu_write; GASPI 17.1, gaspi_write.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status gpu_write(const Group& group, const EndpointView& endpoint,
                                                   const SegmentOffset& source, std::uint32_t rank,
                                                   const SegmentOffset& destination, std::uint64_t bytes,
                                                   std::uint32_t queue) {
  const detail::Write write = detail::checked_write(endpoint, source, rank, destination, bytes, queue);
  if (write.status != Status::ok) return write.status;
  if (!write.in_place)
    return put(group, endpoint.context, write.destination, write.source, bytes, rank, QueueId{queue});
  ::beeline::detail::copy_bytes(group, write.destination, write.source, bytes);
  return Status::ok;
}

/// `gpu_write`, then sets a notification of the destination's segment at `rank`: a thread there that acquires it sees
/// the data of this write.
///   bytes  may be 0
/// Every thread of `group` calls it. Does not block. If data or notification are refused, nothing is written.
/// Source: seed 000, section 5.7; GASPI 17.1, gaspi_write_notify.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status gpu_write_notify(const Group& group, const EndpointView& endpoint,
                                                          const SegmentOffset& source, std::uint32_t rank,
                                                          const SegmentOffset& destination, std::uint64_t bytes,
                                                          const Notification& notification, std::uint32_t queue) {
  const Context& ctx = endpoint.context;
  const detail::Write write = detail::checked_write(endpoint, source, rank, destination, bytes, queue);
  if (write.status != Status::ok) return write.status;
  const Status status = detail::check_notification(endpoint, write.flags, rank, notification);
  if (status != Status::ok) return status;
  std::uint64_t* const flag = write.flags + notification.id;
  if (!write.in_place)
    return put_signal(group, ctx, write.destination, write.source, bytes, flag, notification.value, rank,
                      QueueId{queue});
  ::beeline::detail::copy_bytes(group, write.destination, write.source, bytes);
  return signal(group, ctx, flag, notification.value, rank, Order::memory, QueueId{queue});
}

/// Sets a notification of a segment at `rank`, after all earlier writes of the group, and all that this queue was given
/// before, are visible there.
/// Every thread of `group` calls it. Does not block. See Errors at the top of this file.
/// Source: seed 000, section 5.7.5; GASPI 17.1, gaspi_notify.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status notify(const Group& group, const EndpointView& endpoint, std::uint32_t rank,
                                                std::uint32_t segment, const Notification& notification,
                                                std::uint32_t queue) {
  const SegmentEntry part = detail::entry_of(endpoint, endpoint.destination, segment, rank);
  if (part.bytes == 0 || queue >= endpoint.table.queues) return Status::invalid_argument;
  const Status status = detail::check_notification(endpoint, part.flags, rank, notification);
  if (status != Status::ok) return status;
  return signal(group, endpoint.context, part.flags + notification.id, notification.value, rank, Order::memory,
                QueueId{queue});
}

/// Blocks until a notification of this rank's part of a segment is set; the data that it announced are then visible to
/// the group. The notification stays set.
///   timeout  the call's own limit; after `timeout` the same call continues
/// Every thread of `group` calls it, and gets the same status: ok; timeout; deadline; aborted; invalid_argument.
/// Source: seed 000, listing 5.6.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status wait_for_notification(const Group& group, const EndpointView& endpoint,
                                                               std::uint32_t segment, std::uint32_t id,
                                                               Timeout timeout = Timeout::none()) {
  const Context& ctx = endpoint.context;
  const SegmentEntry own = detail::own_entry_of(endpoint, segment);
  if (own.bytes == 0 || id >= endpoint.table.notifications) return Status::invalid_argument;
  const detail::Limit limit(ctx, timeout);
  return limit.status(::beeline::wait(group, ctx, own.flags + id, Compare::not_equal, 0, no_peer, limit.timeout()));
}

/// Blocks until one of the notifications [first, first + count) of this rank's part of a segment is set, and sets `id`
/// to the lowest of those that it finds set. The data that this notification announced are then visible to the group.
///   id       on every thread of the group; unchanged unless the status is ok
///   timeout  as in `wait_for_notification`
/// Every thread of `group` calls it; they share the search. Several groups may wait for overlapping ranges: each then
/// calls `notify_reset`, and exactly one of them gets the value. Returns as `wait_for_notification`; invalid_argument
/// also for a count of 0 and a range that is not all there. Source: GASPI 17.1, gaspi_notify_waitsome.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status notify_waitsome(const Group& group, const EndpointView& endpoint,
                                                         std::uint32_t segment, std::uint32_t first,
                                                         std::uint32_t count, std::uint32_t& id,
                                                         Timeout timeout = Timeout::none()) {
  const SegmentEntry own = detail::own_entry_of(endpoint, segment);
  if (own.bytes == 0 || count == 0 || first >= endpoint.table.notifications ||
      count > endpoint.table.notifications - first)
    return Status::invalid_argument;
  const detail::Limit limit(endpoint.context, timeout);
  std::uint32_t index = 0;
  const Status status =
      limit.status(detail::wait_for_some(group, endpoint.context, {own.flags + first, count}, limit.timeout(), index));
  if (status == Status::ok) id = first + index;
  return status;
}

/// Sets a notification of this rank's part of a segment to 0, in one atomic operation with the reading of its old
/// value.
///   value  old value, 0 if it was not set; on every thread of the group
/// Every thread of `group` calls it, and gets the same status. Does not block. In a kernel on a GPU unreachable for
/// flags in host memory (see Flags at the top of this file). Source: GASPI 17.1, gaspi_notify_reset.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status notify_reset(const Group& group, const EndpointView& endpoint,
                                                      std::uint32_t segment, std::uint32_t id, std::uint32_t& value) {
  std::uint64_t before = 0;
  const Status status = detail::reset_flag(group, endpoint.context, detail::own_entry_of(endpoint, segment),
                                           id < endpoint.table.notifications ? id : ~0u, before);
  if (status == Status::ok) value = detail::shared_word(group, static_cast<std::uint32_t>(before));
  return status;
}
/// The same for callers that do not need the old value: saves some synchronizations of the group.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status notify_reset(const Group& group, const EndpointView& endpoint,
                                                      std::uint32_t segment, std::uint32_t id) {
  std::uint64_t before = 0;
  return detail::reset_flag(group, endpoint.context, detail::own_entry_of(endpoint, segment),
                            id < endpoint.table.notifications ? id : ~0u, before);
}

/// Local completion of a queue: on return the sources of its writes may be reused. Blocks. Every thread of `group`
/// calls it, and gets the same status: ok; invalid_argument for a queue that does not exist; if an engine carries
/// writes, also deadline or aborted. Covers all operations that happen before it, of all blocks. Source: seed 000,
/// section 5.7.3; GASPI 17.1, gaspi_wait.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status wait(const Group& group, const EndpointView& endpoint, std::uint32_t queue) {
  if (queue >= endpoint.table.queues) return Status::invalid_argument;
  return flush(group, endpoint.context, QueueId{queue});
}

}  // namespace BEELINE_CALLS

}  // namespace beeline::gaspi
