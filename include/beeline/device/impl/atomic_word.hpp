// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Atomic operations on a word, by CPU threads and by threads of a GPU: the orders of C++, and the scopes of CUDA, by
/// built-in functions of the compilers. libcu++'s atomics compile to the same instructions, but nvcc takes 3 s to read
/// them in each file. Source: GCC manual, __atomic builtins; CUDA C++ Programming Guide, __nv_atomic functions (since
/// CUDA 12.8).

#include <atomic>
#include <type_traits>

#include "beeline/core/macros.hpp"

namespace beeline::machine {

/// The threads towards which an operation is atomic and ordered: threads of one device, or of all devices. On a CPU
/// both scopes are the system.
enum class Scope { device, system };

// Order and scope of nvcc's functions have to be constants. Each macro is the body of a function with a parameter
// `order`.
#if BEELINE_ON_GPU
#define BEELINE_IN_SCOPE(operation, nv_order, ...)                                                         \
  return scope == Scope::device ? __nv_atomic_##operation(__VA_ARGS__, nv_order, __NV_THREAD_SCOPE_DEVICE) \
                                : __nv_atomic_##operation(__VA_ARGS__, nv_order, __NV_THREAD_SCOPE_SYSTEM)
#define BEELINE_LOAD(word)                                 \
  switch (order) {                                         \
    case std::memory_order_relaxed:                        \
      BEELINE_IN_SCOPE(load_n, __NV_ATOMIC_RELAXED, word); \
    case std::memory_order_acquire:                        \
      BEELINE_IN_SCOPE(load_n, __NV_ATOMIC_ACQUIRE, word); \
    default:                                               \
      BEELINE_IN_SCOPE(load_n, __NV_ATOMIC_SEQ_CST, word); \
  }
#define BEELINE_STORE(word, value)                                 \
  switch (order) {                                                 \
    case std::memory_order_relaxed:                                \
      BEELINE_IN_SCOPE(store_n, __NV_ATOMIC_RELAXED, word, value); \
    case std::memory_order_release:                                \
      BEELINE_IN_SCOPE(store_n, __NV_ATOMIC_RELEASE, word, value); \
    default:                                                       \
      BEELINE_IN_SCOPE(store_n, __NV_ATOMIC_SEQ_CST, word, value); \
  }
#define BEELINE_CHANGE(operation, word, value)                       \
  switch (order) {                                                   \
    case std::memory_order_relaxed:                                  \
      BEELINE_IN_SCOPE(operation, __NV_ATOMIC_RELAXED, word, value); \
    case std::memory_order_acquire:                                  \
      BEELINE_IN_SCOPE(operation, __NV_ATOMIC_ACQUIRE, word, value); \
    case std::memory_order_release:                                  \
      BEELINE_IN_SCOPE(operation, __NV_ATOMIC_RELEASE, word, value); \
    case std::memory_order_acq_rel:                                  \
      BEELINE_IN_SCOPE(operation, __NV_ATOMIC_ACQ_REL, word, value); \
    default:                                                         \
      BEELINE_IN_SCOPE(operation, __NV_ATOMIC_SEQ_CST, word, value); \
  }
#else
#define BEELINE_LOAD(word) return __atomic_load_n(word, static_cast<int>(order));
#define BEELINE_STORE(word, value) __atomic_store_n(word, value, static_cast<int>(order));
#define BEELINE_CHANGE(operation, word, value) return __atomic_##operation(word, value, static_cast<int>(order));
#endif

/// The operations of std::atomic_ref on a 32- or 64-bit integer, with a scope.
template <class T, Scope scope>
class AtomicWord {
  static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "a 32- or 64-bit integer");
  using Order = std::memory_order;

 public:
  BEELINE_HOST_DEVICE explicit AtomicWord(T& word) : word_(&word) {}

  [[nodiscard]] BEELINE_HOST_DEVICE T load(Order order) const {BEELINE_LOAD(word_)} BEELINE_HOST_DEVICE
      void store(T value, Order order) const {BEELINE_STORE(word_, value)} BEELINE_HOST_DEVICE T
      exchange(T value, Order order) const {BEELINE_CHANGE(exchange_n, word_, value)} BEELINE_HOST_DEVICE T
      fetch_add(T value, Order order) const {BEELINE_CHANGE(fetch_add, bits(), bits_of(value))} BEELINE_HOST_DEVICE T
      fetch_and(T value, Order order) const {BEELINE_CHANGE(fetch_and, bits(), bits_of(value))} BEELINE_HOST_DEVICE T
      fetch_or(T value, Order order) const {BEELINE_CHANGE(fetch_or, bits(), bits_of(value))} BEELINE_HOST_DEVICE T
      fetch_xor(T value, Order order) const {BEELINE_CHANGE(fetch_xor, bits(), bits_of(value))}

  BEELINE_HOST_DEVICE T fetch_min(T value, Order order) const {
#if BEELINE_ON_GPU
    BEELINE_CHANGE(fetch_min, word_, value)
#else
    T held = load(std::memory_order_relaxed);
    while (!compare_exchange_strong(held, value < held ? value : held, order)) {
    }
    return held;
#endif
  }
  BEELINE_HOST_DEVICE T fetch_max(T value, Order order) const {
#if BEELINE_ON_GPU
    BEELINE_CHANGE(fetch_max, word_, value)
#else
    T held = load(std::memory_order_relaxed);
    while (!compare_exchange_strong(held, value > held ? value : held, order)) {
    }
    return held;
#endif
  }
  /// Stores `desired` if the word equals `expected`, and returns whether it did; if not, sets `expected` to the word.
  /// Any order but relaxed is sequentially consistent.
  BEELINE_HOST_DEVICE bool compare_exchange_strong(T& expected, T desired, Order order) const {
    return order == std::memory_order_relaxed ? compare_exchange<__ATOMIC_RELAXED>(expected, desired)
                                              : compare_exchange<__ATOMIC_SEQ_CST>(expected, desired);
  }

 private:
  using Bits = std::make_unsigned_t<T>;
  BEELINE_HOST_DEVICE Bits* bits() const { return reinterpret_cast<Bits*>(word_); }
  BEELINE_HOST_DEVICE static Bits bits_of(T value) { return static_cast<Bits>(value); }

  template <int order>
  BEELINE_HOST_DEVICE bool compare_exchange(T& expected, T desired) const {
#if BEELINE_ON_GPU
    BEELINE_IN_SCOPE(compare_exchange_n, order, word_, &expected, desired, false, order);
#else
    return __atomic_compare_exchange_n(word_, &expected, desired, false, order, order);
#endif
  }

  T* word_;
};

#if BEELINE_ON_GPU
#undef BEELINE_IN_SCOPE
#endif
#undef BEELINE_LOAD
#undef BEELINE_STORE
#undef BEELINE_CHANGE

template <class T>
using SystemAtomic = AtomicWord<T, Scope::system>;
template <class T>
using DeviceAtomic = AtomicWord<T, Scope::device>;

}  // namespace beeline::machine
