// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Signals: 64-bit words that announce data (GASPI: notifications), and the waits on them.
///
/// A signal lies where its waiter polls: in the symmetric heap (`World::signals`) for kernels, in the pinned heap
/// (`World::signals(count, Heap::pinned)`) for CPU threads; in a mixed world always in host memory, which both reach. A
/// signal that nobody waits for harms nothing.

#include <cstdint>
#include <cuda/atomic>

#include "beeline/device/access.hpp"

namespace beeline {

/// An ordered stream of operations towards each peer; 0 to `max_queues` - 1. Stores by the calling threads need none:
/// the path `peer` orders what all queues hold.
struct Queue {
  std::uint32_t index = 0;
};

namespace detail {

BEELINE_HOST_DEVICE constexpr bool holds(std::uint64_t observed, Compare compare, std::uint64_t value) {
  switch (compare) {
    case Compare::equal:
      return observed == value;
    case Compare::not_equal:
      return observed != value;
    case Compare::greater:
      return observed > value;
    case Compare::greater_equal:
      return observed >= value;
    case Compare::less:
      return observed < value;
    case Compare::less_equal:
      return observed <= value;
  }
  return false;
}

BEELINE_HOST_DEVICE inline std::uint64_t load_signal(const std::uint64_t* signal, Order order) {
  SystemAtomic<std::uint64_t> word(const_cast<std::uint64_t&>(*signal));
  return order == Order::memory ? word.load(cuda::memory_order_acquire) : word.load(cuda::memory_order_relaxed);
}

BEELINE_HOST_DEVICE inline void store_signal(std::uint64_t* signal, std::uint64_t value, Order order) {
  SystemAtomic<std::uint64_t> word(*signal);
  if (order == Order::memory)
    word.store(value, cuda::memory_order_release);
  else
    word.store(value, cuda::memory_order_relaxed);
}

}  // namespace detail

/// Sets `signal` on `peer` to `value` after everything that the group did before is visible there.
///   signal   symmetric address, 8-byte aligned
///   queue    of the puts that it announces
/// Every thread of `group` calls it. Does not block. `Order::relaxed` orders nothing and saves half a microsecond.
/// Returns ok; unreachable when a CPU thread signals in GPU memory (refused: see access.hpp).
/// Source: GASPI notify; OpenSHMEM 1.5 signal_set.
template <class Group>
BEELINE_HOST_DEVICE Status signal(const Group& group, const Context& ctx, std::uint64_t* signal, std::uint64_t value,
                                  std::uint32_t peer, Order order = Order::memory, Queue = {}) {
  std::uint64_t* there = ctx.at(signal, peer);
  group.sync();
  const Status status = detail::admit<Access::load_store>(group, ctx, Operation::signal, there, peer);
  if (status == Status::ok && group.thread_rank() == 0) detail::store_signal(there, value, order);
  return status;
}

/// Adds `value` to `signal` on `peer`, otherwise as `signal`. The sum of many senders is exact: it is an atomic of
/// devices that share atomics over this memory (all GPUs of a node over GPU memory, all CPU threads over host memory).
/// Returns ok; unreachable where `has_atomics` says no (refused: see access.hpp): use a signal for each sender.
template <class Group>
BEELINE_HOST_DEVICE Status signal_add(const Group& group, const Context& ctx, std::uint64_t* signal,
                                      std::uint64_t value, std::uint32_t peer, Order order = Order::memory,
                                      Queue = {}) {
  std::uint64_t* there = ctx.at(signal, peer);
  group.sync();
  const Status status = detail::admit<Access::atomic>(group, ctx, Operation::signal_add, there, peer);
  if (status != Status::ok || group.thread_rank() != 0) return status;
  detail::SystemAtomic<std::uint64_t> word(*there);
  if (order == Order::memory)
    word.fetch_add(value, cuda::memory_order_release);
  else
    word.fetch_add(value, cuda::memory_order_relaxed);
  return status;
}

/// Whether the local `signal` compares true with `value` now. One thread calls it. Acquires: when true, the data that
/// the signal announced is visible to this thread.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool test(const std::uint64_t* signal, Compare compare, std::uint64_t value) {
  return detail::holds(detail::load_signal(signal, Order::memory), compare, value);
}

/// Blocks until the local `signal` compares true with `value`; then the data that it announced is visible to the group.
///   peer     rank expected to send it, named in errors; `no_peer` when any may
///   timeout  the call's own limit; after `timeout` the same call continues
///   order    relaxed: nothing is announced, the value itself is the message
/// Every thread of `group` calls it, and gets the same status: ok, timeout, deadline, aborted.
/// Source: OpenSHMEM 1.5 wait_until; GASPI notify_waitsome.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status wait(const Group& group, const Context& ctx, const std::uint64_t* signal,
                                              Compare compare, std::uint64_t value, std::uint32_t peer = no_peer,
                                              Timeout timeout = Timeout::none(), Order order = Order::memory) {
  Status status = Status::ok;
  if (group.thread_rank() == 0) {
    const Awaited awaited{Operation::wait, peer, 0, value, compare};
    const detail::SystemAtomic<std::uint64_t> word(const_cast<std::uint64_t&>(*signal));
    status = detail::await_word(ctx, awaited, timeout, word, order,
                                [=](std::uint64_t observed) { return detail::holds(observed, compare, value); });
  }
  return agree(group, status);
}

/// Blocks until one of `signals[0, count)` is not zero and sets `index` to the first such.
/// One thread calls it; several may, over overlapping ranges. Reset the signal with `exchange(&signals[index], 0)`,
/// which hands it to exactly one of them.
/// Returns ok; invalid_argument for count 0; timeout, deadline, aborted, with `index` untouched.
/// Source: GASPI notify_waitsome.
[[nodiscard]] BEELINE_HOST_DEVICE inline Status wait_any(const Context& ctx, const std::uint64_t* signals,
                                                         std::uint32_t count, std::uint32_t& index,
                                                         Timeout timeout = Timeout::none()) {
  if (count == 0) return Status::invalid_argument;
  std::uint32_t found = count;
  const Awaited awaited{Operation::wait_any, no_peer, count, 0, Compare::not_equal};
  const Status status = poll_until(ctx, awaited, timeout, [&](std::uint64_t& observed) {
    for (std::uint32_t i = 0; i < count; ++i) {
      observed = detail::load_signal(&signals[i], Order::memory);
      if (observed != 0) {
        found = i;
        return true;
      }
    }
    return false;
  });
  if (status == Status::ok) index = found;
  return status;
}

/// Sets the local `signal` to `value` and returns what it held, atomically among the devices that share atomics over
/// its memory: not by a GPU while a CPU thread may set the same signal in host memory. There let the values grow, and
/// wait for the next. Source: GASPI notify_reset.
BEELINE_HOST_DEVICE inline std::uint64_t exchange(std::uint64_t* signal, std::uint64_t value) {
  return detail::SystemAtomic<std::uint64_t>(*signal).exchange(value, cuda::memory_order_acq_rel);
}

}  // namespace beeline
