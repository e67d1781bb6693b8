// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A word beside the signal that announces it. One store carries both, so that no fence is needed between them. This is
/// the fastest put of 8 bytes into memory without flags of a protocol: `put` with `signal` has to wait half a
/// microsecond or more until the data are acknowledged.

#include <cstdint>

#include "beeline/device/impl/word16_machine.hpp"
#include "beeline/device/signal.hpp"

namespace beeline {

/// Sixteen bytes of symmetric memory. The value may also be read alone, after the signal.
struct alignas(16) SignaledWord {
  std::uint64_t value, signal;
};

namespace detail {

/// Whether the word is in GPU memory. There an access of 16 bytes is indivisible; in host memory only an access of 8
/// bytes is.
BEELINE_HOST_DEVICE inline bool is_whole_at(const Context& ctx, const SignaledWord* word, std::uint32_t place) {
  return BEELINE_ON_GPU && ctx.kind_at(place) == DeviceKind::gpu && !ctx.in_host_half(word);
}

BEELINE_HOST_DEVICE inline void store_signaled(SignaledWord* to, SignaledWord word, [[maybe_unused]] bool whole) {
#if BEELINE_ON_GPU
  if (whole) return machine::store_whole(reinterpret_cast<machine::Word16*>(to), {word.value, word.signal});
#endif
  SystemAtomic<std::uint64_t>(to->value).store(word.value, std::memory_order_relaxed);
  SystemAtomic<std::uint64_t>(to->signal).store(word.signal, std::memory_order_release);
}

BEELINE_HOST_DEVICE inline SignaledWord load_signaled(const SignaledWord* from, [[maybe_unused]] bool whole) {
#if BEELINE_ON_GPU
  if (whole) {
    const machine::Word16 word = machine::load_whole(reinterpret_cast<const machine::Word16*>(from));
    return {word.low, word.high};
  }
#endif
  auto& word = const_cast<SignaledWord&>(*from);
  const std::uint64_t signal = SystemAtomic<std::uint64_t>(word.signal).load(std::memory_order_acquire);
  return {SystemAtomic<std::uint64_t>(word.value).load(std::memory_order_relaxed), signal};
}

/// As `load_signaled`, with acquire order: data that the sender released with the word are then visible to the caller.
/// Callers must use the word: ptxas 13.0 removes a load of 16 bytes whose value is unused, together with its order.
BEELINE_HOST_DEVICE inline SignaledWord load_signaled_acquired(const SignaledWord* from, bool whole) {
#if BEELINE_ON_GPU
  if (whole) {
    const machine::Word16 word = machine::load_whole_acquired(reinterpret_cast<const machine::Word16*>(from));
    return {word.low, word.high};
  }
#endif
  return load_signaled(from, whole);  // on CPUs each load acquires
}

}  // namespace detail

namespace detail {

inline namespace BEELINE_CALLS {

/// `put_signal` of a signaled word, in the form that `check_and_dispatch` of access.hpp takes.
struct PutSignaledWord {
  static constexpr Access access = Access::load_store;
  using Result = Status;
  SignaledWord* destination;
  SignaledWord word;
  std::uint32_t peer;

  [[nodiscard]] BEELINE_HOST_DEVICE Request request() const {
    return {Operation::signal, Verb::store, sizeof word.value, 0, 0, peer};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE Reach reach() const { return reach_of_word(destination); }
  template <class Group>
  BEELINE_HOST_DEVICE Status by_loads(const Group&, const Context& ctx, std::uint32_t place) const {
    SignaledWord* there = ctx.translate(destination, place);
    store_signaled(there, word, is_whole_at(ctx, there, place));
    return Status::ok;
  }
  /// Stores the value, then the signal.
  template <class Group>
  BEELINE_HOST_DEVICE Status by_engine(const Group& group, const Context& ctx) const {
    const Status status = change_by_engine(group, ctx, request(), QueueId{}, &destination->value, word.value);
    if (status != Status::ok) return status;
    return change_by_engine(group, ctx, request(), QueueId{}, &destination->signal, word.signal);
  }
};

}  // namespace BEELINE_CALLS

}  // namespace detail

inline namespace BEELINE_CALLS {

/// Sets value and signal of `destination` on `peer`: a thread at the peer that sees the signal sees the value.
///   destination  symmetric address, 16-byte aligned; in host memory, where value and signal are two stores, write the
///                word again only after the receiver has answered
/// One thread calls it. Does not wait for the peer. The call has no order with other operations, not even in the same
/// queue: data that were put before it may arrive after it. For host memory the call includes a release.
/// Returns as `signal`. Source: OpenSHMEM 1.5 put_signal, for one word.
BEELINE_HOST_DEVICE inline Status put_signal(const Context& ctx, SignaledWord* destination, std::uint64_t value,
                                             std::uint64_t signal, std::uint32_t peer) {
  return detail::check_and_dispatch(Thread{}, ctx, detail::PutSignaledWord{destination, {value, signal}, peer});
}

/// Blocks until the comparison of the local `word`'s signal with `expected` holds, and sets `value` to the value that
/// was stored with the signal. On any other status `value` is unchanged.
///   peer     rank that is expected to send the word, for errors; `no_peer` if any rank may
///   timeout  the call's own limit; after `timeout` the same call continues
/// One thread calls it. Returns ok, timeout, deadline, aborted; invalid_argument as `wait` for a signal.
/// Source: OpenSHMEM 1.5 wait_until.
[[nodiscard]] BEELINE_HOST_DEVICE inline Status wait(const Context& ctx, const SignaledWord* word, Compare compare,
                                                     std::uint64_t expected, std::uint64_t& value,
                                                     std::uint32_t peer = no_peer, Timeout timeout = Timeout::none()) {
  const Status checked = detail::check_wait(ctx, Operation::wait, detail::reach_of_word(word), peer);
  if (checked != Status::ok) return checked;
  const bool whole = detail::is_whole_at(ctx, word, ctx.rank - ctx.first_place);
  SignaledWord seen{};
  const Awaited awaited{Operation::wait, peer, reinterpret_cast<std::uintptr_t>(word), expected, compare};
  const Status status = poll_until(ctx, awaited, timeout, [&](std::uint64_t& observed) {
    seen = detail::load_signaled(word, whole);
    observed = seen.signal;
    return detail::holds(observed, compare, expected);
  });
  if (status == Status::ok) value = seen.value;
  return status;
}

}  // namespace BEELINE_CALLS

}  // namespace beeline
