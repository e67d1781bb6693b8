// SPDX-License-Identifier: Apache-2.0
/// @file
/// Distributed arrays: one array over the memory of all ranks of a world, behind one address. Its chunks go to ranks
/// 0, 1, ... in turn. Kernels load and store the elements of ranks that they reach; `beeline_copy` copies all elements.
#ifndef BEELINE_C_ARRAYS_H
#define BEELINE_C_ARRAYS_H

#include "beeline/c/base.h"

BEELINE_C_BEGIN

/// Consecutive elements of an array that one rank owns. The owner of an element's first byte owns the element.
typedef struct beeline_chunk {
  uint32_t struct_bytes;  ///< sizeof(beeline_chunk), set by the caller
  int32_t owner;          ///< world rank
  size_t first, behind;   ///< elements first to behind - 1
} beeline_chunk;

/// Collective. Makes an array of `count` zeroed elements, with the same arguments on all ranks.
///   chunk_elements  0: one equal chunk for each rank; otherwise block-cyclic. Chunks are rounded up to whole pages: 4
///                   KiB, or 2 MiB if GPU memory takes part
///   kind            BEELINE_MEMORY_DEVICE: each rank's own kind of memory; BEELINE_MEMORY_PINNED, _HOST: host memory
///                   on all ranks
///   array           ended by `beeline_array_destroy`
/// Blocks. BEELINE_INVALID_ARGUMENT if ranks pass different arguments, for 0 elements, or more than 16384 chunks (512
/// with GPU memory); BEELINE_NO_RESOURCE if memory or address space is full. Threads: one for the world.
beeline_status beeline_array_create(beeline_world* world, size_t count, size_t element_bytes, size_t chunk_elements,
                                    int32_t kind, beeline_array** array) BEELINE_NOEXCEPT;
/// Collective. Waits for the default stream, and frees array and handle. Threads: one for the world.
beeline_status beeline_array_destroy(beeline_array* array) BEELINE_NOEXCEPT;
/// The address of element 0 in this process; NULL for a null handle. Threads: any.
void* beeline_array_data(const beeline_array* array) BEELINE_NOEXCEPT;
/// The chunk that has the element `index`: a loop over all chunks continues with `chunk.behind`. Does not block.
/// Threads: any.
beeline_status beeline_array_chunk(const beeline_array* array, size_t index, beeline_chunk* chunk) BEELINE_NOEXCEPT;

BEELINE_C_END

#endif
