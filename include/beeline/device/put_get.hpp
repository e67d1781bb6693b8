// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One-sided transfers. The threads that call them move the data by plain loads and stores (path `peer`); if these do
/// not reach the peer, an engine moves the data (docs/design.md, Routes).
///
/// **Queues.** Each operation belongs to a queue. Operations of one queue towards one rank are done in their order: a
/// signal becomes visible after the data that were put before it. Operations of different queues have no order.
/// "Before" is happens-before: the same thread, a `sync()` of a common group, or a release/acquire of at least device
/// scope. `flush` and `quiet` cover all operations that happen before them in the same sense, of all blocks. Source:
/// GASPI queues (seed 000, 4.3 and 5.7); OpenSHMEM 1.5 fence, quiet.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/device/impl/inline_payload.hpp"
#include "beeline/device/impl/scalar_machine.hpp"
#include "beeline/device/signal.hpp"

namespace beeline {

namespace detail {

/// Copies `words` of type Word. Thread i copies words i, i + `threads` and so on, with four loads in flight.
template <class Word>
BEELINE_HOST_DEVICE void copy_words(std::size_t thread, std::size_t threads, std::byte* to, const std::byte* from,
                                    std::size_t words) {
  constexpr std::size_t size = sizeof(Word);
  std::size_t i = thread;
  BEELINE_NO_UNROLL
  for (; i + 3 * threads < words; i += 4 * threads) {
    const Word a = machine::load_as<Word>(from + size * i);
    const Word b = machine::load_as<Word>(from + size * (i + threads));
    const Word c = machine::load_as<Word>(from + size * (i + 2 * threads));
    const Word d = machine::load_as<Word>(from + size * (i + 3 * threads));
    machine::store_as(to + size * i, a);
    machine::store_as(to + size * (i + threads), b);
    machine::store_as(to + size * (i + 2 * threads), c);
    machine::store_as(to + size * (i + 3 * threads), d);
  }
  BEELINE_NO_UNROLL
  for (; i < words; i += threads) machine::store_as(to + size * i, machine::load_as<Word>(from + size * i));
}

/// Copies any number of bytes at any alignment: in the largest words that both addresses allow, and single bytes before
/// and after them.
BEELINE_COLD BEELINE_HOST_DEVICE inline void copy_unaligned(std::size_t thread, std::size_t threads, std::byte* to,
                                                            const std::byte* from, std::size_t bytes) {
  const auto skew = reinterpret_cast<std::uintptr_t>(to) ^ reinterpret_cast<std::uintptr_t>(from);
  const std::size_t grain = (skew & 15u) == 0 ? 16 : (skew & 3u) == 0 ? 4 : 1;
  std::size_t head = (grain - (reinterpret_cast<std::uintptr_t>(to) & (grain - 1))) & (grain - 1);
  if (head > bytes) head = bytes;
  const std::size_t words = (bytes - head) / grain, tail = head + words * grain;
  copy_words<std::byte>(thread, threads, to, from, head);
  if (grain == 16)
    copy_words<machine::Word16>(thread, threads, to + head, from + head, words);
  else if (grain == 4)
    copy_words<std::uint32_t>(thread, threads, to + head, from + head, words);
  else
    copy_words<std::byte>(thread, threads, to + head, from + head, words);
  copy_words<std::byte>(thread, threads, to + tail, from + tail, bytes - tail);
}

/// Copies `words` of type Word with all threads of the group, in few registers.
template <class Word, class Group>
BEELINE_HOST_DEVICE void copy_slowly(const Group& group, std::byte* to, const std::byte* from, std::size_t words) {
  BEELINE_NO_UNROLL
  for (std::size_t i = group.thread_rank(); i < words; i += group.size())
    machine::store_as(to + sizeof(Word) * i, machine::load_as<Word>(from + sizeof(Word) * i));
}

/// Copies with all threads of the group. The copy of aligned data is inline, so that small messages are fast.
template <class Group>
BEELINE_HOST_DEVICE void copy_bytes(const Group& group, void* destination, const void* source, std::size_t bytes) {
#if BEELINE_ON_GPU
  auto* to = static_cast<std::byte*>(destination);
  const auto* from = static_cast<const std::byte*>(source);
  const auto bits = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | bytes;
  if constexpr (is_out_of_line<Group>) {
    copy_slowly<machine::Word16>(group, to, from, (bits & 15u) == 0 ? bytes / 16 : 0);
    if ((bits & 15u) != 0) copy_slowly<std::byte>(group, to, from, bytes);
  } else if ((bits & 15u) == 0) {
    copy_words<machine::Word16>(group.thread_rank(), group.size(), to, from, bytes / 16);
  } else if ((bits & 7u) == 0 && bytes <= 8 * std::size_t{group.size()}) {
    if (8 * group.thread_rank() < bytes)
      machine::store_as(to + 8 * group.thread_rank(), machine::load_as<std::uint64_t>(from + 8 * group.thread_rank()));
  } else {
    copy_unaligned(group.thread_rank(), group.size(), to, from, bytes);
  }
#else
  // A CPU thread copies one contiguous share of whole cache lines.
  const std::size_t share = ((bytes + group.size() - 1) / group.size() + 63) & ~std::size_t{63};
  const std::size_t first = share * group.thread_rank() < bytes ? share * group.thread_rank() : bytes;
  const std::size_t last = first + share < bytes ? first + share : bytes;
  if (last > first) {
    std::memcpy(static_cast<std::byte*>(destination) + first, static_cast<const std::byte*>(source) + first,
                last - first);
  }
#endif
}

inline namespace BEELINE_CALLS {

/// The structure for `put` and `get` that `check_and_dispatch` (access.hpp) expects.
template <bool puts, class T>
struct MoveElements {
  static constexpr Access access = Access::load_store;
  using Result = Status;
  T* destination;
  const T* source;
  std::size_t count;
  std::uint32_t peer;
  QueueId queue;

  [[nodiscard]] BEELINE_HOST_DEVICE Request request() const { return move_request(puts, peer); }
  [[nodiscard]] BEELINE_HOST_DEVICE Reach reach() const { return reach_of(puts ? destination : source, count); }
  [[nodiscard]] BEELINE_HOST_DEVICE const void* own_end() const { return puts ? source : destination; }
  template <class Group>
  BEELINE_HOST_DEVICE Status by_loads(const Group& group, const Context& ctx, std::uint32_t place) const {
    if constexpr (puts)
      copy_bytes(group, ctx.translate(destination, place), source, count * sizeof(T));
    else
      copy_bytes(group, destination, ctx.translate(source, place), count * sizeof(T));
    return Status::ok;
  }
  template <class Group>
  BEELINE_HOST_DEVICE Status by_engine(const Group& group, const Context& ctx) const {
    const T *remote = puts ? destination : source, *local = puts ? source : destination;
    return move_by_engine(group, ctx, request(), queue, remote, {local, 1, count * sizeof(T), 0, 0});
  }
};

/// The structure for `put` from a source for which the caller vouches.
template <class T>
struct PutReadable : MoveElements<true, T> {
  template <class Group>
  BEELINE_HOST_DEVICE Status by_engine(const Group& group, const Context& ctx) const {
    Request request = this->request();
    request.is_signed = 1;
    return move_by_engine(group, ctx, request, this->queue, this->destination,
                          {this->source, 1, this->count * sizeof(T), 0, 0});
  }
};

/// The structure for `put_signal` and `put_signal_add` that `check_and_dispatch` (access.hpp) expects.
template <bool adds, class T>
struct PutSignal : MoveElements<true, T> {
  using Put = MoveElements<true, T>;
  using Signal = ChangeSignal<adds>;
  Signal signal;

  template <class Group>
  BEELINE_HOST_DEVICE Status by_loads(const Group& group, const Context& ctx, std::uint32_t place) const {
    const Status status = check_access<Signal::access>(group, ctx, signal.request().operation, signal.reach(), place);
    if (status != Status::ok) return status;
    static_cast<void>(Put::by_loads(group, ctx, place));
    if constexpr (adds) group.sync();
    return signal.by_loads(group, ctx, place);
  }
  template <class Group>
  BEELINE_HOST_DEVICE Status by_engine(const Group& group, const Context& ctx) const {
    if constexpr (adds) {
      const Status status = Put::by_engine(group, ctx);
      return status == Status::ok ? signal.by_engine(group, ctx) : status;
    } else {
      const std::size_t bytes = this->count * sizeof(T);
      if (bytes == 0) return signal.by_engine(group, ctx);
      return put_signal_by_engine(group, ctx, this->queue,
                                  {this->destination, this->source, bytes, signal.word, signal.value, this->peer});
    }
  }
};

/// Checks data and signal before the first byte moves.
template <class Group, bool adds, class T>
BEELINE_HOST_DEVICE Status put_and_signal(const Group& group, const Context& ctx, const PutSignal<adds, T>& operation) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
  Status status = check_calls(group, ctx, operation.reach(), operation.signal.reach(), operation.peer);
  if (status == Status::ok)
    status = check_own_end(group, ctx, Operation::put, operation.own_end(), operation.reach().bytes, operation.peer);
  return status == Status::ok ? dispatch(group, ctx, operation) : status;
}

/// The put of one scalar.
template <class T>
struct PutValue {
  static constexpr Access access = Access::load_store;
  using Result = Status;
  T* destination;
  T value;
  std::uint32_t peer;
  QueueId queue;

  [[nodiscard]] BEELINE_HOST_DEVICE Request request() const {
    return {Operation::put, Verb::store, sizeof value, 0, 0, peer};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE Reach reach() const { return reach_of_word(destination); }
  template <class Group>
  BEELINE_HOST_DEVICE Status by_loads(const Group&, const Context& ctx, std::uint32_t place) const {
    machine::store_scalar(ctx.translate(destination, place), value);
    return Status::ok;
  }
  template <class Group>
  BEELINE_HOST_DEVICE Status by_engine(const Group& group, const Context& ctx) const {
    return change_by_engine(group, ctx, request(), queue, destination, machine::bits_of(value));
  }
};

}  // namespace BEELINE_CALLS

}  // namespace detail

inline namespace BEELINE_CALLS {

/// Copies `count` elements from local `source` to `destination` on `peer`.
///   destination  [count] symmetric address;  source  [count] any local address, reusable when every thread has
///                returned; if an engine carries the put, after `flush`
/// Every thread of `group` calls it, with the same arguments. Does not wait for the peer. Source and destination must
/// not overlap.
/// Completion: visible at `peer` after a later `signal` of this queue, or `quiet`.
/// Returns ok; unreachable if a CPU thread puts into GPU memory or there is no route to the peer, invalid_argument for
/// a bad peer or address (both refused: see access.hpp); if an engine carries the put, also deadline (its queue stays
/// full) or aborted.
/// Speed: 16-byte accesses if the addresses of source and destination are equal modulo 16.
/// Source: OpenSHMEM 1.5 put; seed 000 sections 5.7 and 6.2.
template <class Group, class T>
BEELINE_HOST_DEVICE Status put(const Group& group, const Context& ctx, T* destination, const T* source,
                               std::size_t count, std::uint32_t peer, QueueId queue = {}) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
  return detail::check_and_dispatch(group, ctx, detail::MoveElements<true, T>{destination, source, count, peer, queue});
}

/// `put` with the kind of the source, if the caller knows it. An engine that first copies the source to its own buffer,
/// as for another node, then need not ask whether its device reads the memory. See SourceKind; otherwise as `put`.
/// Source: seed 004, the kind of memory as an argument of put.
template <class Group, class T>
BEELINE_HOST_DEVICE Status put(const Group& group, const Context& ctx, T* destination, const T* source,
                               std::size_t count, std::uint32_t peer, QueueId queue, SourceKind kind) {
  if (kind == SourceKind::unknown) return put(group, ctx, destination, source, count, peer, queue);
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
  return detail::check_and_dispatch(group, ctx, detail::PutReadable<T>{{destination, source, count, peer, queue}});
}

/// Copies `count` elements from `source` on `peer` to local `destination`.
///   source  [count] symmetric address;  destination  [count] any local address
/// Every thread of `group` calls it. Blocking: each thread's share has arrived when the thread returns, and all data
/// after `group.sync()`. If the peer writes the data concurrently, acquire them first (`wait` for their signal, or
/// `barrier`).
/// Returns as `put`. If an engine carries the get and the call returns `deadline`, the engine may still write
/// `destination` later.
/// Source: OpenSHMEM 1.5 get.
template <class Group, class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status get(const Group& group, const Context& ctx, T* destination, const T* source,
                                             std::size_t count, std::uint32_t peer) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
  return detail::check_and_dispatch(group, ctx,
                                    detail::MoveElements<false, T>{destination, source, count, peer, QueueId{}});
}

/// `put`, then sets `signal` on `peer` to `value`: a thread there that acquires the signal's value sees the data.
///   signal  symmetric address, 8-byte aligned
/// Every thread of `group` calls it. Does not wait for the peer. `source` is reusable as in `put`. Returns as `put` and
/// `signal`; if either is refused, nothing is put.
/// Source: OpenSHMEM 1.5 put_signal; GASPI write_notify.
template <class Group, class T>
BEELINE_HOST_DEVICE Status put_signal(const Group& group, const Context& ctx, T* destination, const T* source,
                                      std::size_t count, std::uint64_t* signal, std::uint64_t value, std::uint32_t peer,
                                      QueueId queue = {}) {
  return detail::put_and_signal(
      group, ctx, detail::PutSignal<false, T>{{destination, source, count, peer, queue}, {signal, value, peer, queue}});
}

/// `put_signal` that adds `value` to `signal`, as `signal_add` does: one signal counts the puts of many senders.
/// Returns as `put` and `signal_add`; if either is refused, nothing is put. Source: OpenSHMEM 1.5 put_signal with
/// SHMEM_SIGNAL_ADD.
template <class Group, class T>
BEELINE_HOST_DEVICE Status put_signal_add(const Group& group, const Context& ctx, T* destination, const T* source,
                                          std::size_t count, std::uint64_t* signal, std::uint64_t value,
                                          std::uint32_t peer, QueueId queue = {}) {
  return detail::put_and_signal(
      group, ctx, detail::PutSignal<true, T>{{destination, source, count, peer, queue}, {signal, value, peer, queue}});
}

}  // namespace BEELINE_CALLS

namespace detail {

template <class T>
inline constexpr bool is_scalar = std::is_trivially_copyable_v<T> &&
                                  (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);

}  // namespace detail

inline namespace BEELINE_CALLS {

/// Stores one scalar into `destination` on `peer`: by a single store (1, 2, 4 or 8 bytes, naturally aligned), so that
/// the peer may poll it with `load_value`. One thread calls it. Returns as `put`.
/// Source: OpenSHMEM 1.5 p; seed 003, scalar put.
template <class T>
BEELINE_HOST_DEVICE Status put_value(const Context& ctx, T* destination, T value, std::uint32_t peer,
                                     QueueId queue = {}) {
  static_assert(detail::is_scalar<T>, "a scalar of 1, 2, 4 or 8 bytes");
  return detail::check_and_dispatch(Thread{}, ctx, detail::PutValue<T>{destination, value, peer, queue});
}

}  // namespace BEELINE_CALLS

/// Reads a local scalar that a peer's `put_value` may be changing, by a single load that orders no other access. One
/// thread calls it. Does not block.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE T load_value(const T* word) {
  static_assert(detail::is_scalar<T>, "a scalar of 1, 2, 4 or 8 bytes");
  return machine::load_scalar(word);
}

/// Memory fence: every device sees effects that precede this call before it sees later effects of this thread. One
/// thread calls it.
BEELINE_HOST_DEVICE inline void fence() { machine::fence_system(); }

/// Local completion of `queue`: on return the sources of its puts may be reused. Blocks. Every thread of `group` calls
/// it, and gets the same status: ok; if an engine carries puts, also deadline or aborted. Source: GASPI wait.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status flush(const Group& group, const Context& ctx, QueueId queue = {}) {
  if (ctx.has_routes != 0) [[unlikely]]
    return detail::drain_route(group, ctx, Operation::flush, queue);
  group.sync();  // a put by loads and stores has read its source as soon as its threads have returned
  return Status::ok;
}

/// Remote completion of `queue`: on return its puts are visible at their targets. Blocks. Every thread of `group` calls
/// it. Returns as `flush`. Source: OpenSHMEM 1.5 quiet.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status quiet(const Group& group, const Context& ctx, QueueId queue = {}) {
  group.sync();
  machine::fence_system();
  if (ctx.has_routes != 0) [[unlikely]]
    return detail::drain_route(group, ctx, Operation::quiet, queue);
  group.sync();
  return Status::ok;
}

}  // namespace beeline
