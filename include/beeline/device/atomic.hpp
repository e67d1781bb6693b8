// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Atomic operations on a peer's memory. One thread calls each. They are relaxed: they order no other access. The
/// functions whose name has `fetch`, `atomic_exchange` and `atomic_compare_swap` block until the old value has arrived,
/// and store it in `before`, their last parameter. The other functions do not block.
///
/// The operations are atomic among the devices that share atomics on that memory: all GPUs of a node on GPU memory, all
/// CPU threads on host memory, and further devices listed in access.hpp. From other devices an atomic is refused: it
/// returns `unreachable`, touches neither the target nor `before`, and aborts the team. `has_atomics` says in advance
/// whether an atomic would be refused. A bad argument is refused in the same way, with `invalid_argument`. If an engine
/// carries out an atomic, the call may also return `aborted`, or `deadline` if the engine's queue stays full or, for
/// functions that block, if no answer arrives. `target` is a symmetric address, aligned to its type, a 32- or 64-bit
/// integer. Source: OpenSHMEM 1.5 atomics; GASPI atomics.

#include <cstdint>
#include <type_traits>

#include "beeline/device/access.hpp"
#include "beeline/device/impl/verbs.hpp"

namespace beeline {

namespace detail {

template <class T>
BEELINE_HOST_DEVICE SystemAtomic<T> remote_word(const Context& ctx, T* target, std::uint32_t place) {
  static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "a 32- or 64-bit integer");
  return SystemAtomic<T>(*ctx.translate(target, place));
}

/// The unsigned type with the size of T. The machine's reductions take this type, since their results do not depend on
/// the sign.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
BEELINE_HOST_DEVICE Bits<T>* remote_bits(const Context& ctx, T* target, std::uint32_t place) {
  static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "a 32- or 64-bit integer");
  return reinterpret_cast<Bits<T>*>(ctx.translate(target, place));
}

/// Applies `verb` to a word; the old value is not needed.
template <Verb verb, class B>
BEELINE_HOST_DEVICE void reduce(B* word, B value) {
  if constexpr (verb == Verb::add) machine::reduce_add(word, value);
  if constexpr (verb == Verb::bit_and) machine::reduce_and(word, value);
  if constexpr (verb == Verb::bit_or) machine::reduce_or(word, value);
  if constexpr (verb == Verb::bit_xor) machine::reduce_xor(word, value);
}

inline namespace BEELINE_CALLS {

/// An atomic without a result, in the form that `check_and_dispatch` of access.hpp takes.
template <Verb verb, class T>
struct ReduceWord {
  static constexpr Access access = Access::atomic;
  using Result = Status;
  T* target;
  T value;
  std::uint32_t peer;

  [[nodiscard]] BEELINE_HOST_DEVICE Request request() const {
    return {Operation::atomic, verb, sizeof(T), std::is_signed_v<T>, 0, peer};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE Reach reach() const { return reach_of_word(target); }
  template <class Group>
  BEELINE_HOST_DEVICE Status by_loads(const Group&, const Context& ctx, std::uint32_t place) const {
    reduce<verb>(remote_bits(ctx, target, place), static_cast<Bits<T>>(value));
    return Status::ok;
  }
  template <class Group>
  BEELINE_HOST_DEVICE Status by_engine(const Group& group, const Context& ctx) const {
    return change_by_engine(group, ctx, request(), QueueId{}, target, static_cast<Bits<T>>(value));
  }
};

/// Carries out an atomic that returns the old value.
///   expected  the expected value of compare_swap
template <Verb verb, class T>
struct FetchWord {
  static constexpr Access access = Access::atomic;
  using Result = Fetched;
  T* target;
  T value, expected;
  std::uint32_t peer;

  [[nodiscard]] BEELINE_HOST_DEVICE Request request() const {
    return {Operation::atomic, verb, sizeof(T), std::is_signed_v<T>, 1, peer};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE Reach reach() const { return reach_of_word(target); }
  template <class Group>
  BEELINE_HOST_DEVICE Fetched by_loads(const Group&, const Context& ctx, std::uint32_t place) const {
    return {Status::ok, static_cast<Bits<T>>(
                            change<verb>(remote_word(ctx, target, place), value, expected, std::memory_order_relaxed))};
  }
  template <class Group>
  BEELINE_HOST_DEVICE Fetched by_engine(const Group&, const Context& ctx) const {
    return fetch_by_engine(ctx, request(), target, static_cast<Bits<T>>(value), static_cast<Bits<T>>(expected));
  }
};

template <Verb verb, class T>
BEELINE_HOST_DEVICE Status reduce_word(const Context& ctx, T* target, T value, std::uint32_t peer) {
  return check_and_dispatch(Thread{}, ctx, ReduceWord<verb, T>{target, value, peer});
}

template <Verb verb, class T>
BEELINE_HOST_DEVICE Status fetch_word(const Context& ctx, T* target, T value, T expected, std::uint32_t peer,
                                      T& before) {
  const Fetched fetched = check_and_dispatch(Thread{}, ctx, FetchWord<verb, T>{target, value, expected, peer});
  if (fetched.status == Status::ok) before = static_cast<T>(fetched.value);
  return fetched.status;
}

}  // namespace BEELINE_CALLS

}  // namespace detail

/// The element type as a non-deduced context, so that literals convert to it.
template <class T>
using Operand = std::type_identity_t<T>;

inline namespace BEELINE_CALLS {

/// Adds `value` to `target` on `peer`.
template <class T>
BEELINE_HOST_DEVICE Status atomic_add(const Context& ctx, T* target, Operand<T> value, std::uint32_t peer) {
  return detail::reduce_word<Verb::add, T>(ctx, target, value, peer);
}

/// Replaces `target` on `peer` by `target & value`.
template <class T>
BEELINE_HOST_DEVICE Status atomic_and(const Context& ctx, T* target, Operand<T> value, std::uint32_t peer) {
  return detail::reduce_word<Verb::bit_and, T>(ctx, target, value, peer);
}

/// Replaces `target` on `peer` by `target | value`.
template <class T>
BEELINE_HOST_DEVICE Status atomic_or(const Context& ctx, T* target, Operand<T> value, std::uint32_t peer) {
  return detail::reduce_word<Verb::bit_or, T>(ctx, target, value, peer);
}

/// Replaces `target` on `peer` by `target ^ value`.
template <class T>
BEELINE_HOST_DEVICE Status atomic_xor(const Context& ctx, T* target, Operand<T> value, std::uint32_t peer) {
  return detail::reduce_word<Verb::bit_xor, T>(ctx, target, value, peer);
}

/// Adds `value` to `target` on `peer`; `before` gets the old value.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_fetch_add(const Context& ctx, T* target, Operand<T> value,
                                                          std::uint32_t peer, T& before) {
  return detail::fetch_word<Verb::add, T>(ctx, target, value, T{}, peer, before);
}

/// Replaces `target` on `peer` by `target & value`; `before` gets the old value.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_fetch_and(const Context& ctx, T* target, Operand<T> value,
                                                          std::uint32_t peer, T& before) {
  return detail::fetch_word<Verb::bit_and, T>(ctx, target, value, T{}, peer, before);
}

/// Replaces `target` on `peer` by `target | value`; `before` gets the old value.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_fetch_or(const Context& ctx, T* target, Operand<T> value,
                                                         std::uint32_t peer, T& before) {
  return detail::fetch_word<Verb::bit_or, T>(ctx, target, value, T{}, peer, before);
}

/// Replaces `target` on `peer` by `target ^ value`; `before` gets the old value.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_fetch_xor(const Context& ctx, T* target, Operand<T> value,
                                                          std::uint32_t peer, T& before) {
  return detail::fetch_word<Verb::bit_xor, T>(ctx, target, value, T{}, peer, before);
}

/// Replaces `target` on `peer` by the smaller of `target` and `value`; `before` gets the old value.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_fetch_min(const Context& ctx, T* target, Operand<T> value,
                                                          std::uint32_t peer, T& before) {
  return detail::fetch_word<Verb::minimum, T>(ctx, target, value, T{}, peer, before);
}

/// Replaces `target` on `peer` by the larger of `target` and `value`; `before` gets the old value.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_fetch_max(const Context& ctx, T* target, Operand<T> value,
                                                          std::uint32_t peer, T& before) {
  return detail::fetch_word<Verb::maximum, T>(ctx, target, value, T{}, peer, before);
}

/// Replaces `target` on `peer` by `value`; `before` gets the old value.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_exchange(const Context& ctx, T* target, Operand<T> value,
                                                         std::uint32_t peer, T& before) {
  return detail::fetch_word<Verb::exchange, T>(ctx, target, value, T{}, peer, before);
}

/// Stores `desired` into `target` on `peer` if `target` equals `expected`; `before` gets the old value either way.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_compare_swap(const Context& ctx, T* target, Operand<T> expected,
                                                             Operand<T> desired, std::uint32_t peer, T& before) {
  return detail::fetch_word<Verb::compare_swap, T>(ctx, target, desired, expected, peer, before);
}

}  // namespace BEELINE_CALLS

}  // namespace beeline
