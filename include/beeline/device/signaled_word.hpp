// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A word with the signal that announces it beside it: both travel in one store, so that no fence is waited for. It is
/// the quickest put of 8 bytes into plain memory: `put` and `signal` wait half a microsecond and more for the
/// acknowledgement of the data before they may announce it.

#include <cstdint>

#include "beeline/device/impl/word16_machine.hpp"
#include "beeline/device/signal.hpp"

namespace beeline {

/// Sixteen bytes of symmetric memory. The value may also be read alone, after the signal.
struct alignas(16) SignaledWord {
  std::uint64_t value, signal;
};

namespace detail {

/// Whether the word lies in GPU memory: there an access of 16 bytes is whole, in host memory only one of 8 is.
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

/// What was released with a word that has been seen is visible to the caller from now on.
BEELINE_HOST_DEVICE inline void acquire_signaled([[maybe_unused]] const SignaledWord* from) {
#if BEELINE_ON_GPU
  static_cast<void>(machine::load_whole_acquired(reinterpret_cast<const machine::Word16*>(from)));
#endif  // elsewhere each load acquires
}

}  // namespace detail

namespace detail {

inline namespace BEELINE_CALLS {

/// What `put_signal` of a signaled word asks admission for (access.hpp).
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
  /// The value, then the signal.
  template <class Group>
  BEELINE_HOST_DEVICE Status by_engine(const Group& group, const Context& ctx) const {
    const Status status = change_by_engine(group, ctx, request(), Queue{}, &destination->value, word.value);
    if (status != Status::ok) return status;
    return change_by_engine(group, ctx, request(), Queue{}, &destination->signal, word.signal);
  }
};

}  // namespace BEELINE_CALLS

}  // namespace detail

inline namespace BEELINE_CALLS {

/// Sets value and signal of `destination` on `peer`: a thread there that sees the signal sees the value.
///   destination  symmetric address; in host memory, where value and signal are two stores, the receiver must have
///                answered before it is written again
/// One thread calls it. Does not wait for the peer. Orders nothing else, not even inside a queue: what was put before
/// may arrive after it. In host memory it costs a release.
/// Returns as `signal`. Source: OpenSHMEM 1.5 put_signal, for one word.
BEELINE_HOST_DEVICE inline Status put_signal(const Context& ctx, SignaledWord* destination, std::uint64_t value,
                                             std::uint64_t signal, std::uint32_t peer) {
  return detail::admit(Thread{}, ctx, detail::PutSignaledWord{destination, {value, signal}, peer});
}

/// Blocks until the signal of the local `word` compares true with `expected`; `value` is then what came with it, and
/// is untouched otherwise.
///   peer     rank expected to send it, named in errors; `no_peer` when any may
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
  const Awaited awaited{Operation::wait, peer, 0, expected, compare};
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
