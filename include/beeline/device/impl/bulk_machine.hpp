// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The PTX of bulk copies (TMA), beside machine.hpp: only files with bulk transfers include it. One thread calls each
/// function.
///
/// Bulk copies read and write through the *async proxy*, all other code through the generic proxy. A bulk copy after a
/// generic access to the same memory needs `fence_async_proxy` between the two. A generic access after a bulk copy
/// needs no fence, since the completion of the copy, once observed, includes one (PTX ISA, "Asynchronous copy: async
/// proxy").

#include <cstddef>
#include <cstdint>

#include "beeline/core/macros.hpp"

/// Whether the code being compiled can copy in bulk. There is no portable twin: without bulk copies callers copy by
/// loads and stores.
#if BEELINE_ON_GPU && __CUDA_ARCH__ >= 900
#define BEELINE_HAS_BULK_COPIES 1
#else
#define BEELINE_HAS_BULK_COPIES 0
#endif

namespace beeline::machine {

#if BEELINE_ON_GPU

/// The dynamic shared memory of the calling thread's block.
BEELINE_HOST_DEVICE inline std::byte* dynamic_shared_memory() {
  extern __shared__ __align__(128) std::byte beeline_dynamic_shared_memory[];
  return beeline_dynamic_shared_memory;
}

#else

BEELINE_HOST_DEVICE inline std::byte* dynamic_shared_memory() { return nullptr; }

#endif

#if BEELINE_HAS_BULK_COPIES

BEELINE_HOST_DEVICE inline std::uint32_t shared_address(const void* shared) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
}

/// Orders generic accesses before the fence (also accesses of other threads that happen before this call) and bulk
/// copies after the fence.
BEELINE_HOST_DEVICE inline void fence_async_proxy() { asm volatile("fence.proxy.async;" ::: "memory"); }

/// Initializes `barrier` for one arrival in each phase. The first phase has parity 0.
BEELINE_HOST_DEVICE inline void make_bulk_barrier(std::uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
}
/// Ends the barrier's life, so that its memory may be used for other data.
BEELINE_HOST_DEVICE inline void end_bulk_barrier(std::uint64_t* barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}

/// Starts a copy from global to shared memory, which ends the barrier's phase. Addresses and bytes: multiples of 16.
BEELINE_HOST_DEVICE inline void bulk_load(std::byte* shared, const std::byte* global, std::uint32_t bytes,
                                          std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(shared)),
               "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}
/// Whether the phase of this parity is over; waits for a short time before it returns false.
BEELINE_HOST_DEVICE inline bool bulk_loaded(std::uint64_t* barrier, std::uint32_t parity) {
  std::uint32_t over;
  asm volatile(
      "{\n"
      ".reg .pred over;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
      "selp.u32 %0, 1, 0, over;\n"
      "}"
      : "=r"(over)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return over != 0;
}

/// Starts a copy from shared to global memory, in a separate bulk group. Addresses and bytes: multiples of 16.
BEELINE_HOST_DEVICE inline void bulk_store(std::byte* global, const std::byte* shared, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(global)),
               "r"(shared_address(shared)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Waits until all stores except the last have read their shared memory.
BEELINE_HOST_DEVICE inline void await_earlier_bulk_reads() {
  asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
}
/// Waits until all stores are complete and visible to this thread. With `.read` it would wait only until they have read
/// their sources
/// (PTX ISA, cp.async.bulk.wait_group).
BEELINE_HOST_DEVICE inline void await_bulk_stores() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

#endif

}  // namespace beeline::machine
