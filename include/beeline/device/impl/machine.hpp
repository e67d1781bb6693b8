// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The one file with inline PTX and intrinsics, each beside its portable twin. Everything above is portable C++.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "beeline/core/macros.hpp"
#include "beeline/core/wait_policy.hpp"

#if !BEELINE_ON_GPU
#include <sched.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#endif

namespace beeline::machine {

/// Two 8-byte packets, stored or loaded together; each half is single-copy atomic, the whole is not.
struct alignas(16) PacketPair {
  std::uint64_t low, high;
};

/// Sixteen bytes moved by one instruction.
struct alignas(16) Word16 {
  std::uint64_t low, high;
};

/// One load or store of a T at an address aligned for it, regardless of the type with which the memory was written.
template <class T>
BEELINE_HOST_DEVICE inline T load_as(const std::byte* from) {
#if BEELINE_ON_GPU
  return *reinterpret_cast<const T*>(from);  // nvcc would compile a memcpy to an access for each byte
#else
  T value;
  std::memcpy(&value, __builtin_assume_aligned(from, alignof(T)), sizeof(T));
  return value;
#endif
}
template <class T>
BEELINE_HOST_DEVICE inline void store_as(std::byte* to, T value) {
#if BEELINE_ON_GPU
  *reinterpret_cast<T*>(to) = value;
#else
  std::memcpy(__builtin_assume_aligned(to, alignof(T)), &value, sizeof(T));
#endif
}

#if BEELINE_ON_GPU

BEELINE_HOST_DEVICE inline std::uint64_t clock_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
BEELINE_HOST_DEVICE inline void store_packets(PacketPair* to, PacketPair value) {
  asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(value.low), "l"(value.high) : "memory");
}
BEELINE_HOST_DEVICE inline PacketPair load_packets(const PacketPair* from) {
  PacketPair value;
  asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(value.low), "=l"(value.high) : "l"(from) : "memory");
  return value;
}
/// Stores the flags of both packets; their data stay.
BEELINE_HOST_DEVICE inline void store_flags(PacketPair* to, std::uint32_t flag) {
  asm volatile("{ st.volatile.global.u32 [%0+4], %1; st.volatile.global.u32 [%0+12], %1; }" ::"l"(to), "r"(flag)
               : "memory");
}
/// Orders everything that this thread has observed or done before the fence, towards the whole system.
BEELINE_HOST_DEVICE inline void fence_system() { __threadfence_system(); }
/// A faster, weaker fence with the same scope: two threads that each store and then load may both fail to see the store
/// of the other thread.
BEELINE_HOST_DEVICE inline void fence_acquire_release() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
/// The sequentially consistent fence and the acquire-release fence with the scope of this device.
BEELINE_HOST_DEVICE inline void fence_device_sequential() { __threadfence(); }
BEELINE_HOST_DEVICE inline void fence_device() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
/// Atomics without a result, on global memory, relaxed, of system scope. The instruction without a result is 1.5 times
/// as fast as the instruction with a result; the compiler chooses it only for addresses that it knows to be global.
#define BEELINE_REDUCTION(name, operation)                                                               \
  BEELINE_HOST_DEVICE inline void name(std::uint32_t* word, std::uint32_t value) {                       \
    asm volatile("red.relaxed.sys.global." operation "32 [%0], %1;" ::"l"(word), "r"(value) : "memory"); \
  }                                                                                                      \
  BEELINE_HOST_DEVICE inline void name(std::uint64_t* word, std::uint64_t value) {                       \
    asm volatile("red.relaxed.sys.global." operation "64 [%0], %1;" ::"l"(word), "l"(value) : "memory"); \
  }
BEELINE_REDUCTION(reduce_add, "add.u")
BEELINE_REDUCTION(reduce_and, "and.b")
BEELINE_REDUCTION(reduce_or, "or.b")
BEELINE_REDUCTION(reduce_xor, "xor.b")
#undef BEELINE_REDUCTION

/// Prefetches the data of a later load, without waiting for them.
BEELINE_HOST_DEVICE inline void prefetch(const void* from) {
  asm volatile("{ .reg .u32 unused; ld.global.u8 unused, [%0]; }" ::"l"(from));
}
/// For a kernel that has started early: waits until the stream's earlier work has ended and is visible.
BEELINE_HOST_DEVICE inline void await_stream() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Pauses for about `ns` nanoseconds, at most twice as long.
BEELINE_HOST_DEVICE inline void pause_ns(std::uint32_t ns) { __nanosleep(ns); }

BEELINE_HOST_DEVICE inline void back_off(std::uint32_t, Polling) {}
BEELINE_HOST_DEVICE inline bool backs_off(std::uint32_t, Polling) { return false; }
BEELINE_HOST_DEVICE inline bool is_interrupted(std::uint64_t, std::uint64_t) { return false; }

BEELINE_HOST_DEVICE inline unsigned block_thread_rank() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
BEELINE_HOST_DEVICE inline unsigned block_size() { return blockDim.x * blockDim.y * blockDim.z; }
BEELINE_HOST_DEVICE inline unsigned block_rank() {
  return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}
BEELINE_HOST_DEVICE inline unsigned block_count() { return gridDim.x * gridDim.y * gridDim.z; }
BEELINE_HOST_DEVICE inline void block_sync() { __syncthreads(); }
BEELINE_HOST_DEVICE inline bool block_any(bool mine) { return __syncthreads_or(mine) != 0; }
BEELINE_HOST_DEVICE inline unsigned lane() { return block_thread_rank() & 31u; }
BEELINE_HOST_DEVICE inline void warp_sync() { __syncwarp(); }
BEELINE_HOST_DEVICE inline bool warp_any(bool mine) { return __any_sync(0xffffffffu, mine) != 0; }

#else

BEELINE_HOST_DEVICE inline std::uint64_t clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}
BEELINE_HOST_DEVICE inline void store_packets(PacketPair* to, PacketPair value) {
  __atomic_store_n(&to->low, value.low, __ATOMIC_RELAXED);
  __atomic_store_n(&to->high, value.high, __ATOMIC_RELAXED);
}
BEELINE_HOST_DEVICE inline PacketPair load_packets(const PacketPair* from) {
  return {__atomic_load_n(&from->low, __ATOMIC_RELAXED), __atomic_load_n(&from->high, __ATOMIC_RELAXED)};
}
BEELINE_HOST_DEVICE inline void store_flags(PacketPair* to, std::uint32_t flag) {
  const PacketPair pair = load_packets(to);
  const std::uint64_t flags = std::uint64_t{flag} << 32;
  store_packets(to, {(pair.low & 0xffffffffu) | flags, (pair.high & 0xffffffffu) | flags});
}
BEELINE_HOST_DEVICE inline void fence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
BEELINE_HOST_DEVICE inline void fence_acquire_release() { __atomic_thread_fence(__ATOMIC_ACQ_REL); }
BEELINE_HOST_DEVICE inline void fence_device_sequential() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
BEELINE_HOST_DEVICE inline void fence_device() { __atomic_thread_fence(__ATOMIC_ACQ_REL); }

BEELINE_HOST_DEVICE inline void prefetch(const void*) {}
BEELINE_HOST_DEVICE inline void await_stream() {}

template <class T>
BEELINE_HOST_DEVICE void reduce_add(T* word, T value) {
  __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}
template <class T>
BEELINE_HOST_DEVICE void reduce_and(T* word, T value) {
  __atomic_fetch_and(word, value, __ATOMIC_RELAXED);
}
template <class T>
BEELINE_HOST_DEVICE void reduce_or(T* word, T value) {
  __atomic_fetch_or(word, value, __ATOMIC_RELAXED);
}
template <class T>
BEELINE_HOST_DEVICE void reduce_xor(T* word, T value) {
  __atomic_fetch_xor(word, value, __ATOMIC_RELAXED);
}

BEELINE_HOST_DEVICE inline void sleep_us(std::uint32_t microseconds) {
  const timespec pause{microseconds / 1'000'000, static_cast<long>(microseconds % 1'000'000) * 1'000};
  nanosleep(&pause, nullptr);
}

/// Called after each unsuccessful poll. By default it spins for a number of polls, then yields the core, then sleeps,
/// so that many ranks make progress on few cores.
BEELINE_HOST_DEVICE inline void back_off(std::uint32_t poll, Polling polling) {
  constexpr std::uint32_t yields_before_sleep = 4096;
  if (!polling.gives_core_away(poll)) {
#if defined(__x86_64__)
    _mm_pause();
#endif
    return;
  }
  const std::uint32_t yields = poll - polling.number();
  const bool sleeps =
      polling.sleeps_at_once() || (polling.policy() != WaitPolicy::yield && yields >= yields_before_sleep);
  detail::tell_wait();
  // If there was work, more work is likely, since data arrive in parts.
  if (sleeps ? detail::do_wait_work() : detail::do_wait_work(yields)) return;
  if (sleeps)
    sleep_us(polling.sleeps_at_once() ? polling.number() : 50);
  else
    sched_yield();
}

/// Whether `back_off` yields the core at this poll.
BEELINE_HOST_DEVICE inline bool backs_off(std::uint32_t poll, Polling polling) { return polling.gives_core_away(poll); }

/// Whether a signal of the program ends this thread's wait: see WaitInterrupt.
BEELINE_HOST_DEVICE inline bool is_interrupted(std::uint64_t now, std::uint64_t waited_ns) {
  return waited_ns >= detail::interruptible_from_ns && detail::is_interrupted(now);
}

// Groups of GPU threads do not exist on a CPU; these twins let the same templates compile for a CPU, and are never
// called.
[[noreturn]] BEELINE_HOST_DEVICE inline void not_on_a_cpu() { __builtin_trap(); }
BEELINE_HOST_DEVICE inline void pause_ns(std::uint32_t) { not_on_a_cpu(); }
BEELINE_HOST_DEVICE inline unsigned block_thread_rank() { not_on_a_cpu(); }
BEELINE_HOST_DEVICE inline unsigned block_size() { not_on_a_cpu(); }
BEELINE_HOST_DEVICE inline unsigned block_rank() { not_on_a_cpu(); }
BEELINE_HOST_DEVICE inline unsigned block_count() { not_on_a_cpu(); }
BEELINE_HOST_DEVICE inline void block_sync() { not_on_a_cpu(); }
BEELINE_HOST_DEVICE inline bool block_any(bool) { not_on_a_cpu(); }
BEELINE_HOST_DEVICE inline unsigned lane() { not_on_a_cpu(); }
BEELINE_HOST_DEVICE inline void warp_sync() { not_on_a_cpu(); }
BEELINE_HOST_DEVICE inline bool warp_any(bool) { not_on_a_cpu(); }

#endif

}  // namespace beeline::machine
