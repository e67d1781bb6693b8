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
BEELINE_HOST_DEVICE SystemAtomic<T> remote_word(const Context& ctx, T* target, std::uint32_t peer) {
  static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "a 32- or 64-bit integer");
  return SystemAtomic<T>(*ctx.translate(target, peer));
}

/// The word as what the machine's reductions take: their operations do not see the sign.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
BEELINE_HOST_DEVICE Bits<T>* remote_bits(const Context& ctx, T* target, std::uint32_t peer) {
  static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "a 32- or 64-bit integer");
  return reinterpret_cast<Bits<T>*>(ctx.translate(target, peer));
}

inline namespace BEELINE_CALLS {

/// Whether an atomic may go ahead; otherwise it has been refused.
template <class T>
BEELINE_HOST_DEVICE Status admit_atomic(const Context& ctx, const T* target, std::uint32_t peer) {
  return admit<Access::atomic>(Thread{}, ctx, Operation::atomic, reach_of_word(target), peer);
}

/// An atomic that gives the old value: what `change(word)` returns.
template <class T, class Change>
BEELINE_HOST_DEVICE Status fetch(const Context& ctx, T* target, std::uint32_t peer, T& before, Change change) {
  const Status status = admit_atomic(ctx, target, peer);
  if (status == Status::ok) before = change(remote_word(ctx, target, peer));
  return status;
}

}  // namespace BEELINE_CALLS

}  // namespace detail

/// The element type without letting it take part in deduction, so that literals convert.
template <class T>
using Operand = std::type_identity_t<T>;

inline namespace BEELINE_CALLS {

template <class T>
BEELINE_HOST_DEVICE Status atomic_add(const Context& ctx, T* target, Operand<T> value, std::uint32_t peer) {
  if (const Status status = detail::admit_atomic(ctx, target, peer); status != Status::ok) return status;
  machine::reduce_add(detail::remote_bits(ctx, target, peer), static_cast<detail::Bits<T>>(value));
  return Status::ok;
}

template <class T>
BEELINE_HOST_DEVICE Status atomic_and(const Context& ctx, T* target, Operand<T> value, std::uint32_t peer) {
  if (const Status status = detail::admit_atomic(ctx, target, peer); status != Status::ok) return status;
  machine::reduce_and(detail::remote_bits(ctx, target, peer), static_cast<detail::Bits<T>>(value));
  return Status::ok;
}

template <class T>
BEELINE_HOST_DEVICE Status atomic_or(const Context& ctx, T* target, Operand<T> value, std::uint32_t peer) {
  if (const Status status = detail::admit_atomic(ctx, target, peer); status != Status::ok) return status;
  machine::reduce_or(detail::remote_bits(ctx, target, peer), static_cast<detail::Bits<T>>(value));
  return Status::ok;
}

template <class T>
BEELINE_HOST_DEVICE Status atomic_xor(const Context& ctx, T* target, Operand<T> value, std::uint32_t peer) {
  if (const Status status = detail::admit_atomic(ctx, target, peer); status != Status::ok) return status;
  machine::reduce_xor(detail::remote_bits(ctx, target, peer), static_cast<detail::Bits<T>>(value));
  return Status::ok;
}

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_fetch_add(const Context& ctx, T* target, Operand<T> value,
                                                          std::uint32_t peer, T& before) {
  return detail::fetch(ctx, target, peer, before,
                       [value](auto word) { return word.fetch_add(value, cuda::memory_order_relaxed); });
}

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_fetch_and(const Context& ctx, T* target, Operand<T> value,
                                                          std::uint32_t peer, T& before) {
  return detail::fetch(ctx, target, peer, before,
                       [value](auto word) { return word.fetch_and(value, cuda::memory_order_relaxed); });
}

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_fetch_or(const Context& ctx, T* target, Operand<T> value,
                                                         std::uint32_t peer, T& before) {
  return detail::fetch(ctx, target, peer, before,
                       [value](auto word) { return word.fetch_or(value, cuda::memory_order_relaxed); });
}

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_fetch_xor(const Context& ctx, T* target, Operand<T> value,
                                                          std::uint32_t peer, T& before) {
  return detail::fetch(ctx, target, peer, before,
                       [value](auto word) { return word.fetch_xor(value, cuda::memory_order_relaxed); });
}

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_fetch_min(const Context& ctx, T* target, Operand<T> value,
                                                          std::uint32_t peer, T& before) {
  return detail::fetch(ctx, target, peer, before,
                       [value](auto word) { return word.fetch_min(value, cuda::memory_order_relaxed); });
}

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_fetch_max(const Context& ctx, T* target, Operand<T> value,
                                                          std::uint32_t peer, T& before) {
  return detail::fetch(ctx, target, peer, before,
                       [value](auto word) { return word.fetch_max(value, cuda::memory_order_relaxed); });
}

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_exchange(const Context& ctx, T* target, Operand<T> value,
                                                         std::uint32_t peer, T& before) {
  return detail::fetch(ctx, target, peer, before,
                       [value](auto word) { return word.exchange(value, cuda::memory_order_relaxed); });
}

/// Stores `desired` if the target equals `expected`.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE Status atomic_compare_swap(const Context& ctx, T* target, Operand<T> expected,
                                                             Operand<T> desired, std::uint32_t peer, T& before) {
  return detail::fetch(ctx, target, peer, before, [=](auto word) {
    T held = expected;
    word.compare_exchange_strong(held, desired, cuda::memory_order_relaxed);
    return held;
  });
}

}  // namespace BEELINE_CALLS

}  // namespace beeline
