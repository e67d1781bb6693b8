// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Requests to an RMA-style adapter: posting, waiting for notifications, and freeing them. `RmaPorts` makes the ports
/// (host/rma_ports.hpp); docs/adapters.md has the format and its rules.
///
/// A port belongs to one thread or group at a time, which posts, reads and frees. Its page holds one request: a post
/// first waits until the request before is over. Requests of a port take effect in their order, after all earlier
/// writes of the caller's group.
///
/// **Returns**, unless stated otherwise: ok; timeout if the page was not free in time: nothing was posted, and the call
/// may be repeated; invalid_argument for a notification set that Table 2.2 does not have, for a port, lock or peer that
/// does not exist, and for a put or get with a bad peer or address (refused: see access.hpp); deadline; aborted. Errors
/// that only the adapter detects are reported in a notification, also to posters that asked for none.
///
/// `Access`, in calls that have this parameter, makes the accesses to the port's memory.
///
/// Source: seed 000, 5.6 (RMA unit of Extoll).

#include <cstdint>
#include <type_traits>

#include "beeline/control/impl/direct_access.hpp"
#include "beeline/control/rma_format.hpp"
#include "beeline/device/put_get.hpp"

namespace beeline {

/// One port of this rank, for kernels and CPU threads.
struct RmaPort {
  RmaPortMemory* memory;              ///< nullptr: there is no such port
  RmaNotification* queue;             ///< [depth]
  std::uint32_t depth, ports, locks;  ///< the same on every rank
  std::uint64_t* wanted;              ///< set to wake a resident adapter; nullptr: an engine serves the port
};

/// The ports of a rank, which kernels take by value.
struct RmaPortsView {
  RmaPortMemory* memory;    ///< [ports]
  RmaNotification* queues;  ///< [ports, depth]
  std::uint32_t ports, depth, locks;
  std::uint64_t* wanted = nullptr;

  /// Port `index`. If there is none, every call with it returns invalid_argument.
  [[nodiscard]] BEELINE_HOST_DEVICE RmaPort port(std::uint32_t index) const {
    if (index >= ports) return {nullptr, nullptr, depth, ports, locks, wanted};
    return {&memory[index], &queues[std::uint64_t{index} * depth], depth, ports, locks, wanted};
  }
};

/// The target of a request, and the units that write notifications of it.
struct RmaTo {
  std::uint32_t peer;                      ///< rank of the team
  std::uint32_t notifications = rma_none;  ///< set of `RmaUnit`
  std::uint32_t vpid = 0;                  ///< port of the peer that is notified
};

namespace detail {

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE std::byte* bytes_of(T& word) {
  return reinterpret_cast<std::byte*>(&word);
}

/// Waits until the request in the page is complete. One thread calls it.
template <class Access>
BEELINE_HOST_DEVICE Status await_page(const Context& ctx, const RmaPort& port, Operation operation, std::uint32_t peer,
                                      Timeout timeout) {
  RmaPage& page = port.memory->page;
  const Status status = await_engine(ctx, {true, timeout}, [&] {
    return Access::load_acquired(bytes_of(page.logical.words[0])) == 0 &&
           Access::load_acquired(bytes_of(page.physical.words[0])) == 0;
  });
  if (status == Status::ok || status == Status::timeout) return status;
  return give_up_on_engine(ctx, {operation, Verb::put, 0, 0, 0, peer}, 1, 0, status);
}

/// Stores a descriptor after all earlier writes of this thread, and wakes the adapter if it sleeps.
template <class Access>
BEELINE_HOST_DEVICE void store_descriptor(const RmaPort& port, RmaDescriptor& at, const RmaDescriptor& descriptor) {
  Access::store(bytes_of(at.words[1]), descriptor.words[1]);
  Access::store(bytes_of(at.words[2]), descriptor.words[2]);
  if (port.wanted != nullptr)
    Access::store_released_on_device(at.words[0], descriptor.words[0]);
  else
    Access::store_released(at.words[0], descriptor.words[0]);
  wake_adapter<Access>(port.memory->asleep.value, port.wanted);
}

/// Whether the port exists, and the set is one of Table 2.2.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool is_valid(const RmaPort& port, RmaCommand command, const RmaTo& to) {
  return port.memory != nullptr && to.vpid < port.ports && is_notification_set(command, to.notifications);
}

/// Bytes of a put or get of any length.
struct RmaMove {
  RmaCommand command;
  const void *remote, *local;
  std::uint64_t bytes;
};

/// Posts a put or get in pieces that the format can describe; units notify of the last piece. One thread calls it.
///   timeout  limit of the wait before the first piece
template <class Access>
BEELINE_HOST_DEVICE Status post_pieces(const Context& ctx, const RmaPort& port, const RmaMove& move, const RmaTo& to,
                                       Timeout timeout) {
  const bool puts = move.command == RmaCommand::put, is_logical = ctx.owner_of(move.local) == ctx.own_world_rank;
  const std::uint64_t slot =
      (std::uint64_t{ctx.world_rank(to.peer)} << ctx.slot_shift) + reinterpret_cast<std::uintptr_t>(ctx.range);
  const std::uint64_t remote = ctx.offset_in_slot(move.remote) + (is_logical ? 0 : slot);
  const std::uint64_t local =
      is_logical ? ctx.offset_in_slot(move.local) : reinterpret_cast<std::uintptr_t>(move.local);
  const std::uint64_t from = puts ? local : remote, into = puts ? remote : local;
  RmaPage& page = port.memory->page;
  for (std::uint64_t done = 0; done < move.bytes;) {
    const Status status = await_page<Access>(ctx, port, puts ? Operation::put : Operation::get, to.peer,
                                             done == 0 ? timeout : Timeout::none());
    if (status != Status::ok) return status;
    const std::uint64_t left = move.bytes - done, piece = left < max_rma_bytes ? left : max_rma_bytes;
    const RmaRequest request{
        move.command, piece == left ? to.notifications : std::uint32_t{rma_none}, to.peer, to.vpid, piece, from + done,
        into + done};
    store_descriptor<Access>(port, is_logical ? page.logical : page.physical, request.descriptor());
    done += piece;
  }
  return Status::ok;
}

template <class Access, class Group>
BEELINE_HOST_DEVICE Status post_move(const Group& group, const Context& ctx, const RmaPort& port, const RmaMove& move,
                                     const RmaTo& to, Timeout timeout) {
  const Operation operation = move.command == RmaCommand::put ? Operation::put : Operation::get;
  const Status status = check_call(group, ctx, operation, {move.remote, move.bytes, 1}, to.peer);
  if (status != Status::ok) return status;
  if (!is_valid(port, move.command, to)) return Status::invalid_argument;
  group.sync();
  return agree(group, group.thread_rank() == 0 ? post_pieces<Access>(ctx, port, move, to, timeout) : Status::ok);
}

/// Posts a request without memory. One thread calls it.
template <class Access>
BEELINE_HOST_DEVICE Status post_words(const Context& ctx, const RmaPort& port, const RmaRequest& request,
                                      Timeout timeout) {
  const Status status = await_page<Access>(ctx, port, Operation::atomic, request.node, timeout);
  if (status == Status::ok) store_descriptor<Access>(port, port.memory->page.logical, request.descriptor());
  return status;
}

}  // namespace detail

inline namespace BEELINE_CALLS {

/// Copies `count` elements from local `source` to `destination` on a peer. More than `max_rma_bytes` are posted in
/// pieces; units notify of the last piece.
///   destination  [count] symmetric address
///   source       [count] any local address that the adapter reads; reusable after the requester's notification
///   to           sets: rma_none, rma_requester, rma_requester | rma_completer
///   timeout      limit of the wait for the page
/// Every thread of `group` calls it, with the same arguments. With `count` 0 nothing is posted.
template <class Access = detail::DirectAccess, class Group, class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status rma_put(const Group& group, const Context& ctx, const RmaPort& port,
                                                 T* destination, const T* source, std::size_t count, const RmaTo& to,
                                                 Timeout timeout = Timeout::none()) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
  return detail::post_move<Access>(group, ctx, port,
                                   {RmaCommand::put, destination, source, detail::reach_of(destination, count).bytes},
                                   to, timeout);
}

/// Copies `count` elements from `source` on a peer to local `destination`, in pieces as `rma_put`. The elements have
/// arrived once the completer notifies.
///   source  [count] symmetric address;  destination  [count] any local address that the adapter writes
///   to      sets: rma_none, rma_completer, rma_completer | rma_responder
/// Every thread of `group` calls it.
template <class Access = detail::DirectAccess, class Group, class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status rma_get(const Group& group, const Context& ctx, const RmaPort& port,
                                                 T* destination, const T* source, std::size_t count, const RmaTo& to,
                                                 Timeout timeout = Timeout::none()) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
  return detail::post_move<Access>(
      group, ctx, port, {RmaCommand::get, source, destination, detail::reach_of(source, count).bytes}, to, timeout);
}

/// If lock `lock` of a peer equals `compare`, adds `add` to it. The completer's notification has the value before
/// (`RmaNotification::lock_value`); the lock has changed if this is `compare`.
///   to  sets: as of a get
/// One thread calls it. Source: seed 000, 2.4.7, atomic operations.
template <class Access = detail::DirectAccess>
[[nodiscard]] BEELINE_HOST_DEVICE Status rma_lock(const Context& ctx, const RmaPort& port, std::uint32_t lock,
                                                  std::uint32_t compare, std::uint32_t add, const RmaTo& to,
                                                  Timeout timeout = Timeout::none()) {
  if (to.peer >= ctx.size || lock >= port.locks || !detail::is_valid(port, RmaCommand::lock, to))
    return Status::invalid_argument;
  return detail::post_words<Access>(
      ctx, port,
      {RmaCommand::lock, to.notifications, to.peer, to.vpid, rma_lock_bytes, lock, rma_operands(compare, add)},
      timeout);
}

/// Notifies a peer's port of `value`, after the earlier requests of this port; no data move.
///   to  the only set is rma_requester | rma_completer
/// One thread calls it.
template <class Access = detail::DirectAccess>
[[nodiscard]] BEELINE_HOST_DEVICE Status rma_notify(const Context& ctx, const RmaPort& port, std::uint64_t value,
                                                    const RmaTo& to, Timeout timeout = Timeout::none()) {
  if (to.peer >= ctx.size || !detail::is_valid(port, RmaCommand::notify, to)) return Status::invalid_argument;
  return detail::post_words<Access>(
      ctx, port, {RmaCommand::notify, to.notifications, to.peer, to.vpid, rma_notify_bytes, 0, value}, timeout);
}

}  // namespace BEELINE_CALLS

/// Waits until the port's last request is complete: its data are at their destination, and its notifications are
/// written. One thread calls it. Returns ok; timeout; deadline; aborted.
template <class Access = detail::DirectAccess>
[[nodiscard]] BEELINE_HOST_DEVICE Status rma_quiet(const Context& ctx, const RmaPort& port,
                                                   Timeout timeout = Timeout::none()) {
  if (port.memory == nullptr) return Status::invalid_argument;
  return detail::await_page<Access>(ctx, port, Operation::quiet, no_peer, timeout);
}

/// Waits for the port's next notification, and copies it; the data that it announces are then visible. Its entry stays
/// occupied until `rma_free`. One thread calls it.
/// Returns ok; no_resource if there is no notification to read, and adapters have lost some for want of a free entry,
/// which is reported once: the queue is usable after `rma_free`; timeout; deadline; aborted; invalid_argument for a
/// port that does not exist.
template <class Access = detail::DirectAccess>
[[nodiscard]] BEELINE_HOST_DEVICE Status rma_wait(const Context& ctx, const RmaPort& port,
                                                  RmaNotification& notification, Timeout timeout = Timeout::none()) {
  if (port.memory == nullptr) return Status::invalid_argument;
  using detail::bytes_of;
  RmaPortMemory& memory = *port.memory;
  const auto read = Access::template load<std::uint64_t>(bytes_of(memory.read));
  RmaNotification& entry = port.queue[read % port.depth];
  // Whether the entry still holds a notification that was read, so that no other can be written.
  const bool is_occupied = read - Access::template load<std::uint64_t>(bytes_of(memory.freed.value)) == port.depth;
  const auto known = Access::template load<std::uint64_t>(bytes_of(memory.known_overflows));
  std::uint64_t overflowed = 0, word = 0;
  const Awaited awaited{Operation::wait, no_peer, reinterpret_cast<std::uintptr_t>(&entry.word), 0, Compare::not_equal};
  const Status status = poll_until(ctx, awaited, timeout, [&](std::uint64_t& observed) {
    observed = word = is_occupied ? 0 : Access::load_acquired(bytes_of(entry.word));
    if (word != 0) return true;
    overflowed = Access::load_acquired(bytes_of(memory.overflowed.value));
    return overflowed != known;
  });
  if (status != Status::ok) return status;
  if (word == 0) {
    Access::store(bytes_of(memory.known_overflows), overflowed);
    return Status::no_resource;
  }
  notification = {Access::template load<std::uint64_t>(bytes_of(entry.address)), word};
  Access::store(bytes_of(memory.read), read + 1);
  return Status::ok;
}

/// Frees the entries of all notifications that were read: zeroes them, and writes the read pointer back. One thread
/// calls it.
template <class Access = detail::DirectAccess>
BEELINE_HOST_DEVICE void rma_free(const RmaPort& port) {
  if (port.memory == nullptr) return;
  using detail::bytes_of;
  RmaPortMemory& memory = *port.memory;
  const auto read = Access::template load<std::uint64_t>(bytes_of(memory.read));
  for (auto i = Access::template load<std::uint64_t>(bytes_of(memory.freed.value)); i < read; ++i)
    Access::store(bytes_of(port.queue[i % port.depth]), machine::Word16{0, 0});
  Access::store_released(memory.freed.value, read);
}

}  // namespace beeline
