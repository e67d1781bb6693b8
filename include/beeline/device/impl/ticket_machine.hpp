// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tickets: numbers from a counter that the threads of a device share.
/// Source: PTX ISA 8.3, atom.

#include <cstdint>

#include "beeline/core/macros.hpp"

namespace beeline::machine {

/// Adds one to a word of this device's memory, and returns the old value; relaxed. If the compiler knew that all
/// threads of a warp add the same number, one thread would add for all, and each would wait for the result at once. The
/// assembly hides this from it, so that the caller continues until it uses the result.
BEELINE_HOST_DEVICE inline std::uint64_t take_ticket(std::uint64_t* counter) {
#if BEELINE_ON_GPU
  std::uint64_t one, ticket;
  asm("{\n\t.reg .pred some;\n\t.reg .u32 lanes;\n\tmov.u32 lanes, %%lanemask_ge;\n\tsetp.ne.u32 some, lanes, 0;\n\t"
      "selp.u64 %0, 1, 0, some;\n\t}"
      : "=l"(one));
  asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;" : "=l"(ticket) : "l"(counter), "l"(one) : "memory");
  return ticket;
#else
  return __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
#endif
}

}  // namespace beeline::machine
