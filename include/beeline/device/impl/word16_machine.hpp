// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Indivisible accesses of sixteen bytes in GPU memory, by GPUs only.
/// Source: PTX ISA 8.3, st and ld of type .b128; memory consistency model, "Vector and 128-bit data types".

#include "beeline/device/impl/machine.hpp"

namespace beeline::machine {

#if BEELINE_ON_GPU

BEELINE_HOST_DEVICE inline void store_whole(Word16* to, Word16 value) {
  asm volatile(
      "{\n\t.reg .b128 whole;\n\tmov.b128 whole, {%1, %2};\n\tst.relaxed.sys.global.b128 [%0], whole;\n\t}" ::"l"(to),
      "l"(value.low), "l"(value.high)
      : "memory");
}
BEELINE_HOST_DEVICE inline Word16 load_whole(const Word16* from) {
  Word16 value;
  asm volatile("{\n\t.reg .b128 whole;\n\tld.relaxed.sys.global.b128 whole, [%2];\n\tmov.b128 {%0, %1}, whole;\n\t}"
               : "=l"(value.low), "=l"(value.high)
               : "l"(from)
               : "memory");
  return value;
}
/// As `load_whole`, with acquire order: data that were released with the value are then visible to the caller.
BEELINE_HOST_DEVICE inline Word16 load_whole_acquired(const Word16* from) {
  Word16 value;
  asm volatile("{\n\t.reg .b128 whole;\n\tld.acquire.sys.global.b128 whole, [%2];\n\tmov.b128 {%0, %1}, whole;\n\t}"
               : "=l"(value.low), "=l"(value.high)
               : "l"(from)
               : "memory");
  return value;
}

/// After `load_whole`: makes data that were released with the loaded value visible to the caller, without a second
/// load.
/// Source: PTX ISA 8.6, fence.acquire.
BEELINE_HOST_DEVICE inline void acquire_whole() { asm volatile("fence.acquire.sys;" ::: "memory"); }

#endif

}  // namespace beeline::machine
