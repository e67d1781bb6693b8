// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Atomics on a peer's memory. One thread calls each; they order nothing else (relaxed). Those named `fetch`, exchange
/// and compare-swap wait for the old value and give it as `before`, their last parameter; the others do not wait.
///
/// They exclude each other among the devices that share atomics over that memory: all GPUs of a node over GPU memory,
/// all CPU threads over host memory, and what else access.hpp says. All other (`has_atomics` tells) is refused: it
/// returns `unreachable`, touches neither the target nor `before`, and aborts the team; so does a bad argument, which
/// returns `invalid_argument`. `target` is a symmetric address, aligned to its type: a 32- or 64-bit integer. Source:
/// OpenSHMEM 1.5 atomics; GASPI atomics.

#include <cstdint>
#include <cuda/atomic>
#include <type_traits>

#include "beeline/device/access.hpp"

namespace beeline {

namespace detail {

template <class T>
BEELINE_HOST_DEVICE SystemAtomic<T> remote_word(const Context& ctx, T* target, std::uint32_t place) {
  static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "a 32- or 64-bit integer");
  return SystemAtomic<T>(*ctx.translate(target, place));
}

/// The word as what the machine's reductions take: their operations do not see the sign.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
BEELINE_HOST_DEVICE Bits<T>* remote_bits(const Context& ctx, T* target, std::uint32_t place) {
  static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "a 32- or 64-bit integer");
  return reinterpret_cast<Bits<T>*>(ctx.translate(target, place));
}

inline namespace BEELINE_CALLS {

/// What an engine is asked for.
template <class T>
BEELINE_HOST_DEVICE Request request_of(Verb verb, std::uint32_t peer) {
  return {Operation::atomic, verb, sizeof(T), std::is_signed_v<T>, peer};
}

/// An atomic that gives nothing back: `reduce(word)`.
template <class T, class Reduce>
BEELINE_HOST_DEVICE Status reduce_word(const Context& ctx, Verb verb, T* target, T value, std::uint32_t peer,
                                       Reduce reduce) {
  return change_word<Access::atomic>(Thread{}, ctx, request_of<T>(verb, peer), Queue{}, target,
                                     static_cast<Bits<T>>(value), [&](std::uint32_t place) {
                                       reduce(remote_bits(ctx, target, place), static_cast<Bits<T>>(value));
                                       return Status::ok;
                                     });
}

/// An atomic that gives the old value: what `change(word)` returns.
///   expected  of compare_swap
template <class T, class Change>
BEELINE_HOST_DEVICE Status fetch(const Context& ctx, const Request& request, T* target, T value, T expected, T& before,
                                 Change change) {
  const auto by_route = [&] {
    const Fetched fetched =
        fetch_by_route(ctx, request, target, static_cast<Bits<T>>(value), static_cast<Bits<T>>(expected));
    if (fetched.passage.place == no_peer && fetched.passage.status == Status::ok)
      before = static_cast<T>(fetched.value);
    return fetched.passage;
  };
  const auto by_loads = [&](std::uint32_t place) {
    before = change(remote_word(ctx, target, place));
    return Status::ok;
  };
  return admit<Access::atomic>(Thread{}, ctx, Operation::atomic, reach_of_word(target), request.peer, by_route,
                               by_loads);
}

}  // namespace BEELINE_CALLS

}  // namespace detail

/// The element type without letting it take part in deduction, so that literals convert.
template <class T>
using Operand = std::type_identity_t<T>;

inline namespace BEELINE_CALLS {

template <class T>
BEELINE_HOST_DEVICE Status atomic_add(const Context& ctx, T* target, Operand<T> value, std::uint32_t peer) {
  return detail::reduce_word(ctx, Verb::add, target, value, peer,
                             [](auto* word, auto operand) { machine::reduce_add(word, operand); });
}

template <class T>
BEELINE_HOST_DEVICE Status atomic_and(const Context& ctx, T* target, Operand<T> value, std::uint32_t peer) {
  return detail::reduce_word(ctx, Verb::bit_and, target, value, peer,
                             [](auto* word, auto operand) { machine::reduce_and(word, operand); });
}

template <class T>
BEELINE_HOST_DEVICE Status atomic_or(const Context& ctx, T* target, Operand<T> value, std::uint32_t peer) {
  return detail::reduce_word(ctx, Verb::bit_or, target, value, peer,
                             [](auto* word, auto operand) { machine::reduce_or(word, operand); });
}

template <class T>
BEELINE_HOST_DEVICE Status atomic_xor(const Context& ctx, T* target, Operand<T> value, std::uint32_t peer) {
  return detail::reduce_word(ctx, Verb::bit_xor, target, value, peer,
                             [](auto* word, auto operand) { machine::reduce_xor(word, operand); });
}

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_fetch_add(const Context& ctx, T* target, Operand<T> value,
                                                          std::uint32_t peer, T& before) {
  return detail::fetch(ctx, detail::request_of<T>(Verb::add, peer), target, value, T{}, before,
                       [value](auto word) { return word.fetch_add(value, cuda::memory_order_relaxed); });
}

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_fetch_and(const Context& ctx, T* target, Operand<T> value,
                                                          std::uint32_t peer, T& before) {
  return detail::fetch(ctx, detail::request_of<T>(Verb::bit_and, peer), target, value, T{}, before,
                       [value](auto word) { return word.fetch_and(value, cuda::memory_order_relaxed); });
}

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_fetch_or(const Context& ctx, T* target, Operand<T> value,
                                                         std::uint32_t peer, T& before) {
  return detail::fetch(ctx, detail::request_of<T>(Verb::bit_or, peer), target, value, T{}, before,
                       [value](auto word) { return word.fetch_or(value, cuda::memory_order_relaxed); });
}

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_fetch_xor(const Context& ctx, T* target, Operand<T> value,
                                                          std::uint32_t peer, T& before) {
  return detail::fetch(ctx, detail::request_of<T>(Verb::bit_xor, peer), target, value, T{}, before,
                       [value](auto word) { return word.fetch_xor(value, cuda::memory_order_relaxed); });
}

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_fetch_min(const Context& ctx, T* target, Operand<T> value,
                                                          std::uint32_t peer, T& before) {
  return detail::fetch(ctx, detail::request_of<T>(Verb::minimum, peer), target, value, T{}, before,
                       [value](auto word) { return word.fetch_min(value, cuda::memory_order_relaxed); });
}

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_fetch_max(const Context& ctx, T* target, Operand<T> value,
                                                          std::uint32_t peer, T& before) {
  return detail::fetch(ctx, detail::request_of<T>(Verb::maximum, peer), target, value, T{}, before,
                       [value](auto word) { return word.fetch_max(value, cuda::memory_order_relaxed); });
}

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_exchange(const Context& ctx, T* target, Operand<T> value,
                                                         std::uint32_t peer, T& before) {
  return detail::fetch(ctx, detail::request_of<T>(Verb::exchange, peer), target, value, T{}, before,
                       [value](auto word) { return word.exchange(value, cuda::memory_order_relaxed); });
}

/// Stores `desired` if the target equals `expected`.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_compare_swap(const Context& ctx, T* target, Operand<T> expected,
                                                             Operand<T> desired, std::uint32_t peer, T& before) {
  const detail::Request request = detail::request_of<T>(Verb::compare_swap, peer);
  return detail::fetch(ctx, request, target, desired, expected, before, [=](auto word) {
    T held = expected;
    word.compare_exchange_strong(held, desired, cuda::memory_order_relaxed);
    return held;
  });
}

}  // namespace BEELINE_CALLS

}  // namespace beeline
