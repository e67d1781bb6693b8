// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Signals: 64-bit words that announce data (GASPI: notifications), and the waits on them.
///
/// A signal is in memory that its waiter can poll. Kernels poll the symmetric heap (`Signals`). CPU threads of a GPU
/// rank poll the pinned heap (`Signals` in `Heap::pinned`). In a team with GPU ranks and host ranks, `Signals` are
/// always in host memory, which both kinds reach. A signal for which no thread waits does no harm.

#include <cstdint>

#include "beeline/device/access.hpp"

namespace beeline {

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
  return order == Order::memory ? word.load(std::memory_order_acquire) : word.load(std::memory_order_relaxed);
}

BEELINE_HOST_DEVICE inline void store_signal(std::uint64_t* signal, std::uint64_t value, Order order) {
  SystemAtomic<std::uint64_t> word(*signal);
  if (order == Order::memory)
    word.store(value, std::memory_order_release);
  else
    word.store(value, std::memory_order_relaxed);
}

BEELINE_HOST_DEVICE inline void add_to_signal(std::uint64_t* signal, std::uint64_t value, Order order) {
  SystemAtomic<std::uint64_t> word(*signal);
  if (order == Order::memory)
    word.fetch_add(value, std::memory_order_release);
  else
    word.fetch_add(value, std::memory_order_relaxed);
}

/// Where signals are checked (BEELINE_CHECK), reports a CPU thread's store of the value that `word` already has: a wait
/// cannot distinguish such a signal from the previous signal. The value 0 is not reported, since words are 0 at first
/// and are reset to 0.
///   word    a word in the slot of the rank that waits
///   sender  world rank
BEELINE_HOST_DEVICE inline void check_repetition([[maybe_unused]] const Context& ctx,
                                                 [[maybe_unused]] const std::uint64_t* word,
                                                 [[maybe_unused]] std::uint64_t value,
                                                 [[maybe_unused]] std::uint32_t sender) {
#if !BEELINE_ON_GPU
  if (ctx.checks == nullptr || ctx.checks->repeated_signals == nullptr || value == 0) [[likely]]
    return;
  if (load_signal(word, Order::relaxed) == value)
    ctx.checks->repeated_signals->report(sender, ctx.owner_of(word), ctx.offset_in_slot(word), value);
#endif
}

/// Sets `signal` of the member in `place` after all earlier writes of the group. The caller has checked the access.
template <class Group>
BEELINE_HOST_DEVICE void set_signal(const Group& group, const Context& ctx, std::uint64_t* signal, std::uint64_t value,
                                    std::uint32_t place, Order order) {
  group.sync();
  if (group.thread_rank() != 0) return;
  std::uint64_t* const word = ctx.translate(signal, place);
  check_repetition(ctx, word, value, ctx.own_world_rank);
  store_signal(word, value, order);
}

inline namespace BEELINE_CALLS {

/// The structure for `signal` and `signal_add` that `check_and_dispatch` (access.hpp) expects. For `signal_add` the
/// caller has synchronized the group.
template <bool adds>
struct ChangeSignal {
  static constexpr Access access = adds ? Access::atomic : Access::load_store;
  using Result = Status;
  std::uint64_t* word;
  std::uint64_t value;
  std::uint32_t peer;
  QueueId queue;
  Order order = Order::memory;

  [[nodiscard]] BEELINE_HOST_DEVICE Request request() const {
    return {adds ? Operation::signal_add : Operation::signal, adds ? Verb::add : Verb::store, sizeof value, 0, 0, peer};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE Reach reach() const { return reach_of_word(word); }
  template <class Group>
  BEELINE_HOST_DEVICE Status by_loads(const Group& group, const Context& ctx, std::uint32_t place) const {
    if constexpr (!adds)
      set_signal(group, ctx, word, value, place, order);
    else if (group.thread_rank() == 0)
      add_to_signal(ctx.translate(word, place), value, order);
    return Status::ok;
  }
  template <class Group>
  BEELINE_HOST_DEVICE Status by_engine(const Group& group, const Context& ctx) const {
    return change_by_engine(group, ctx, request(), queue, word, value);
  }
};

}  // namespace BEELINE_CALLS

}  // namespace detail

/// Whether the comparison of the local `signal` with `value` holds now. One thread calls it. Does not block. Acquires:
/// if the result is true, the data that the signal announced are visible to this thread.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool test(const std::uint64_t* signal, Compare compare, std::uint64_t value) {
  return detail::holds(detail::load_signal(signal, Order::memory), compare, value);
}

inline namespace BEELINE_CALLS {

/// Sets `signal` on `peer` to `value` after all earlier writes of the group are visible there.
///   signal   symmetric address, 8-byte aligned
///   queue    queue of the puts that the signal announces; used if an engine carries operations to `peer`
/// Every thread of `group` calls it. Does not block. `Order::relaxed` saves half a microsecond, and orders nothing.
/// Returns ok; unreachable if a CPU thread signals in GPU memory or there is no route to the peer, invalid_argument for
/// a bad peer, address or alignment (both refused: see access.hpp); if an engine carries the signal, also deadline (its
/// queue stays full) or aborted. Source: GASPI notify; OpenSHMEM 1.5 signal_set.
template <class Group>
BEELINE_HOST_DEVICE Status signal(const Group& group, const Context& ctx, std::uint64_t* signal, std::uint64_t value,
                                  std::uint32_t peer, Order order = Order::memory, QueueId queue = {}) {
  return detail::check_and_dispatch(group, ctx, detail::ChangeSignal<false>{signal, value, peer, queue, order});
}

/// Adds `value` to `signal` on `peer`; otherwise the same as `signal`. The sum of many senders is exact, because the
/// addition is atomic among the devices that share atomics on this memory (all GPUs of a node on GPU memory, all CPU
/// threads on host memory). Returns as `signal`; also unreachable if `has_atomics` is false (see access.hpp): in this
/// case use one signal for each sender.
template <class Group>
BEELINE_HOST_DEVICE Status signal_add(const Group& group, const Context& ctx, std::uint64_t* signal,
                                      std::uint64_t value, std::uint32_t peer, Order order = Order::memory,
                                      QueueId queue = {}) {
  group.sync();
  return detail::check_and_dispatch(group, ctx, detail::ChangeSignal<true>{signal, value, peer, queue, order});
}

/// Blocks until the comparison of the local `signal` with `value` holds; the data that the signal announced are then
/// visible to the group.
///   peer     rank that is expected to send the signal, for errors; `no_peer` if any rank may
///   timeout  the call's own limit; after `timeout` the same call continues
///   order    relaxed: only the signal's value is needed, it announces no other data
/// Every thread of `group` calls it, and gets the same status: ok, timeout, deadline, aborted; invalid_argument for a
/// null address, a word that is not aligned or a bad peer (refused: see access.hpp). Source: OpenSHMEM 1.5 wait_until;
/// GASPI notify_waitsome.
template <class Group>
[[nodiscard]] BEELINE_HOST_DEVICE Status wait(const Group& group, const Context& ctx, const std::uint64_t* signal,
                                              Compare compare, std::uint64_t value, std::uint32_t peer = no_peer,
                                              Timeout timeout = Timeout::none(), Order order = Order::memory) {
  Status status = Status::ok;
  if (group.thread_rank() == 0) status = detail::check_wait(ctx, Operation::wait, detail::reach_of_word(signal), peer);
  if (group.thread_rank() == 0 && status == Status::ok) {
    const Awaited awaited{Operation::wait, peer, reinterpret_cast<std::uintptr_t>(signal), value, compare};
    const detail::SystemAtomic<std::uint64_t> word(const_cast<std::uint64_t&>(*signal));
    status = detail::await_word(ctx, awaited, timeout, word, order,
                                [=](std::uint64_t observed) { return detail::holds(observed, compare, value); });
  }
  return agree(group, status);
}

/// Blocks until one of `signals[0, count)` is not zero, and sets `index` to the index of the first nonzero signal.
/// One thread calls it. Several threads may call it with overlapping ranges. Each then calls `exchange(ctx,
/// &signals[index], 0, value)`: exactly one of them gets the signal's value, the others get 0. Returns ok; timeout,
/// deadline, aborted, with `index` unchanged; invalid_argument for a null address, signals that are not aligned, or, in
/// every build, count 0 (refused: see access.hpp). Source: GASPI notify_waitsome.
[[nodiscard]] BEELINE_HOST_DEVICE inline Status wait_any(const Context& ctx, const std::uint64_t* signals,
                                                         std::uint32_t count, std::uint32_t& index,
                                                         Timeout timeout = Timeout::none()) {
  if (count == 0)
    return detail::refuse_where_checked(ctx, Operation::wait_any, ctx.rank, {CallFault::no_signals, 1}, true);
  const Status checked = detail::check_wait(ctx, Operation::wait_any, detail::reach_of_word(signals), no_peer);
  if (checked != Status::ok) return checked;
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

/// Sets the local `signal` to `value`, and `before` to its old value, in one atomic operation with acquire and release
/// order. One thread calls it. Does not block.
///   signal  8-byte aligned. In the pinned heap a kernel may exchange it only if access.hpp permits it; otherwise use
///           signals whose values grow, and wait for the next value. Outside of symmetric memory an exchange never
///           returns unreachable; a kernel's exchange on host memory outside of symmetric memory is atomic only towards
///           the same GPU.
/// Returns ok; unreachable, or invalid_argument for a null address or a word that is not aligned (both refused), with
/// `before` unchanged. Source: GASPI notify_reset.
[[nodiscard]] BEELINE_HOST_DEVICE inline Status exchange(const Context& ctx, std::uint64_t* signal, std::uint64_t value,
                                                         std::uint64_t& before) {
  const detail::Reach word = detail::reach_of_word(signal);
  Status status = detail::check_wait(ctx, Operation::exchange, word, no_peer);
  if (status == Status::ok) status = detail::check_local_atomic(ctx, Operation::exchange, word);
  if (status == Status::ok)
    before = detail::SystemAtomic<std::uint64_t>(*signal).exchange(value, std::memory_order_acq_rel);
  return status;
}

}  // namespace BEELINE_CALLS

}  // namespace beeline
