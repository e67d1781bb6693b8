// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Operations that a kernel posts to a command queue, and that the rank's engine carries out (control `proxy`): the
/// caller neither moves the bytes nor waits for them. `CommandQueues` makes the queues (host/command_queues.hpp);
/// docs/control.md says when to use which control.
///
/// Commands of a queue towards one peer take effect in the order in which they were posted; "before" is happens-before,
/// as with the queues of put_get.hpp. Any thread of any block may post to a queue, and wait for it. All earlier writes
/// of the caller's group are visible to the engine. Up to `max_inline_bytes` bytes travel in the command itself, so
/// that their source may be reused at once.
///
/// **Returns**, unless stated otherwise: ok; timeout if the queue had no free cell in time: nothing was posted, and
/// the call may be repeated; invalid_argument for a bad peer or address (refused: see access.hpp); deadline if the
/// engine takes no more commands; aborted; unreachable for CPU threads of a GPU rank. Some errors are detected only by
/// the engine: memory that is not mapped, and ranges that overlap. It then refuses the command and everything that is
/// posted to the queue later: `flush` and `quiet` of the queue return invalid_argument, and `CommandQueues::refusals`
/// gives the reason.
///
/// Source: seed 003, ComP-Net and GPU host networking; OpenSHMEM 1.5 put_nbi, get_nbi, put_signal_nbi.

#include <cstdint>
#include <type_traits>

#include "beeline/device/impl/inline_payload.hpp"
#include "beeline/device/impl/verbs.hpp"
#include "beeline/device/put_get.hpp"

namespace beeline {

namespace detail {

/// Refuses CPU threads of a GPU rank, since they do not reach the tickets of its queues.
BEELINE_HOST_DEVICE inline Status check_poster(const Context& ctx, CommandQueue queue, const Request& request) {
  if constexpr (executor == DeviceKind::host)
    if (ctx.kind_of(ctx.rank) == DeviceKind::gpu) [[unlikely]]
      return refuse(
          ctx, request.operation, request.peer,
          {CallFault::cpu_in_gpu_memory, sizeof(CommandTickets), reinterpret_cast<std::uintptr_t>(queue.tickets)},
          Status::unreachable);
  return Status::ok;
}

/// One thread posts the command with `fields()`, after all earlier writes of the group. Every thread calls it.
template <class Group, class Fields>
BEELINE_HOST_DEVICE Status post(const Group& group, const Context& ctx, CommandQueue queue, Timeout timeout,
                                Fields fields) {
  group.sync();
  Status status = Status::ok;
  if (group.thread_rank() == 0) {
    const CommandFields wanted = fields();
    status = check_poster(ctx, queue, wanted.request);
    if (status == Status::ok) status = command_engine<false>(ctx, queue, wanted, timeout).status;
  }
  return agree(group, status);
}

}  // namespace detail

inline namespace BEELINE_CALLS {

/// Copies `count` elements from local `source` to `destination` on `peer`.
///   destination  [count] symmetric address
///   source       [count] any local address that the engine's device reads, reusable after `flush`
///   timeout      limit of the wait for a free cell in the queue
///   kind         what the caller knows of the source
/// Every thread of `group` calls it, with the same arguments. Completion: visible at `peer` after a later `post_signal`
/// of this queue, or `quiet`. With `count` 0 nothing is posted.
template <class Group, class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status post_put(const Group& group, const Context& ctx, T* destination,
                                                  const T* source, std::size_t count, std::uint32_t peer,
                                                  CommandQueue queue, Timeout timeout = Timeout::none(),
                                                  SourceKind kind = SourceKind::unknown) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
  const Status status = detail::check_call(group, ctx, Operation::put, detail::reach_of(destination, count), peer);
  if (status != Status::ok || count == 0) return status;
  return detail::post(group, ctx, queue, timeout, [&] {
    const std::size_t bytes = count * sizeof(T);
    if (bytes <= max_inline_bytes) return detail::inline_put(ctx, destination, source, bytes, peer);
    const detail::Request request{Operation::put, Verb::put, 0, kind == SourceKind::readable, 0, peer};
    return detail::fields_of(ctx, request, destination, {source, 1, bytes, 0, 0});
  });
}

/// Copies `count` elements from `source` on `peer` to local `destination`, and does not wait for them: they have
/// arrived after `quiet`.
///   source  [count] symmetric address;  destination  [count] any local address that the engine's device writes
/// Every thread of `group` calls it.
template <class Group, class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status post_get(const Group& group, const Context& ctx, T* destination,
                                                  const T* source, std::size_t count, std::uint32_t peer,
                                                  CommandQueue queue, Timeout timeout = Timeout::none()) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
  const Status status = detail::check_call(group, ctx, Operation::get, detail::reach_of(source, count), peer);
  if (status != Status::ok || count == 0) return status;
  return detail::post(group, ctx, queue, timeout, [&] {
    const detail::Request request{Operation::get, Verb::get, 0, 0, 0, peer};
    return detail::fields_of(ctx, request, source, {destination, 1, count * sizeof(T), 0, 0});
  });
}

/// Sets `signal` on `peer` to `value` after everything posted to this queue before is visible there.
///   signal  symmetric address, 8-byte aligned
/// Every thread of `group` calls it.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status post_signal(const Group& group, const Context& ctx, std::uint64_t* signal,
                                                     std::uint64_t value, std::uint32_t peer, CommandQueue queue,
                                                     Timeout timeout = Timeout::none()) {
  const Status status = detail::check_call(group, ctx, Operation::signal, detail::reach_of_word(signal), peer);
  if (status != Status::ok) return status;
  const detail::Request request{Operation::signal, Verb::store, sizeof value, 0, 0, peer};
  return detail::post(group, ctx, queue, timeout, [&] { return detail::word_fields(ctx, request, signal, value); });
}

/// Copies as `post_put`, then sets `signal` on `peer` to `value`: one command, where `post_put` and `post_signal` are
/// two.
///   destination  [count] symmetric address
///   source       [count] any local address that the engine's device reads, reusable after `flush`; up to 24 bytes
///                travel in the command, so that the source may be reused at once
///   signal       symmetric address, 8-byte aligned
///   timeout      limit of the wait for a free cell in the queue
///   kind         what the caller knows of the source
/// Every thread of `group` calls it. A thread at the peer that acquires the signal's value sees the data, and
/// everything posted to this queue before. With `count` 0 it is `post_signal`. If data or signal is refused, nothing is
/// put. Source: OpenSHMEM 1.5 put_signal_nbi.
template <class Group, class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status post_put_signal(const Group& group, const Context& ctx, T* destination,
                                                         const T* source, std::size_t count, std::uint64_t* signal,
                                                         std::uint64_t value, std::uint32_t peer, CommandQueue queue,
                                                         Timeout timeout = Timeout::none(),
                                                         SourceKind kind = SourceKind::unknown) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
  if (count == 0) return post_signal(group, ctx, signal, value, peer, queue, timeout);
  Status status = detail::check_call(group, ctx, Operation::put, detail::reach_of(destination, count), peer);
  if (status == Status::ok)
    status = detail::check_call(group, ctx, Operation::signal, detail::reach_of_word(signal), peer);
  if (status != Status::ok) return status;
  return detail::post(group, ctx, queue, timeout, [&] {
    const std::size_t bytes = count * sizeof(T);
    if (bytes <= max_inline_bytes_with_signal)
      return detail::inline_put_signal(ctx, destination, source, bytes, peer, ctx.offset_in_slot(signal), value);
    return detail::put_signal_fields(ctx, {destination, source, bytes, signal, value, peer, kind});
  });
}

/// Changes a word on `peer` like the atomic operation of the same name, in the order of the queue, without returning
/// the old value.
///   verb    add, bit_and, bit_or, bit_xor, minimum, maximum or exchange
///   target  symmetric address of a 32- or 64-bit integer, aligned to its type
/// One thread calls it. Any other verb: invalid_argument. The change is atomic towards the engine's other commands on
/// that word, and towards the devices that access.hpp lists for the engine's device: a CPU on host memory, a GPU on GPU
/// memory.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status post_atomic(const Context& ctx, Verb verb, T* target,
                                                     std::type_identity_t<T> value, std::uint32_t peer,
                                                     CommandQueue queue, Timeout timeout = Timeout::none()) {
  static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "a 32- or 64-bit integer");
  const Status status = detail::check_call(Thread{}, ctx, Operation::atomic, detail::reach_of_word(target), peer);
  if (status != Status::ok) return status;
  if (!is_atomic_without_answer(verb)) return Status::invalid_argument;
  const detail::Request request{Operation::atomic, verb, sizeof(T), std::is_signed_v<T>, 0, peer};
  return detail::post(Thread{}, ctx, queue, timeout,
                      [&] { return detail::word_fields(ctx, request, target, machine::bits_of(value)); });
}

/// Copies bytes between any two addresses that this rank's device reaches, peers' memory included (`Context::at`): on a
/// GPU by a copy engine, beside the kernel; on a host rank by the engine's thread. The bytes have arrived after
/// `quiet`. Every thread of `group` calls it. Source: seed 000, 6.5 (a copy that a kernel starts).
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status post_copy(const Group& group, const Context& ctx, void* destination,
                                                   const void* source, std::size_t bytes, CommandQueue queue,
                                                   Timeout timeout = Timeout::none()) {
  if (bytes == 0) return Status::ok;
  return detail::post(group, ctx, queue, timeout, [&] {
    const detail::Request request{Operation::copy, Verb::copy, 0, 0, 0, ctx.rank};
    return detail::CommandFields{
        request, ctx.own_world_rank, reinterpret_cast<std::uintptr_t>(destination), {source, 1, bytes, 0, 0}};
  });
}

}  // namespace BEELINE_CALLS

namespace detail {

/// Waits for a queue, and reports whether the engine has refused commands of it.
template <class Group>
BEELINE_HOST_DEVICE Status drain(const Group& group, const Context& ctx, Operation operation, CommandQueue queue,
                                 Timeout timeout) {
  group.sync();
  Status status = Status::ok;
  if (group.thread_rank() == 0) {
    const Fetched drained = drain_queue(ctx, operation, queue, {true, timeout});
    status = drained.status == Status::ok && drained.value != 0 ? Status::invalid_argument : drained.status;
  }
  return agree(group, status);
}

}  // namespace detail

/// Local completion: blocks until everything posted to the queue before has read its sources. Every thread of `group`
/// calls it, and gets the same status: ok; timeout; deadline; aborted; invalid_argument if the engine has ever refused
/// a command of this queue. Source: GASPI wait.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status flush(const Group& group, const Context& ctx, CommandQueue queue,
                                               Timeout timeout = Timeout::none()) {
  return detail::drain(group, ctx, Operation::flush, queue, timeout);
}

/// Remote completion: blocks until everything posted to the queue before is visible at its targets, and gets have
/// arrived. Returns as `flush`. Source: OpenSHMEM 1.5 quiet.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status quiet(const Group& group, const Context& ctx, CommandQueue queue,
                                               Timeout timeout = Timeout::none()) {
  return detail::drain(group, ctx, Operation::quiet, queue, timeout);
}

}  // namespace beeline
