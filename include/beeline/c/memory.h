// SPDX-License-Identifier: Apache-2.0
/// @file
/// Memory that other ranks reach: symmetric memory of teams, segments whose kinds and sizes differ from rank to rank,
/// and registered memory of the program; copies by the host.
#ifndef BEELINE_C_MEMORY_H
#define BEELINE_C_MEMORY_H

#include "beeline/c/base.h"

BEELINE_C_BEGIN

/// One rank's part of a segment or of registered memory, as the calling rank reaches it.
typedef struct beeline_part {
  uint32_t struct_bytes;  ///< sizeof(beeline_part), set by the caller
  int32_t kind;           ///< BEELINE_MEMORY_DEVICE, ...
  uint64_t bytes;         ///< 0: this rank has no part
  void* address;          ///< address in this process; NULL if there is no part, or loads and stores do not reach it
  int32_t copies;         ///< whether copies reach the part
  int32_t reserved;
} beeline_part;

/// Collective. `bytes` of zeroed memory, 256-byte aligned, at the same offset on every member.
///   heap    BEELINE_HEAP_SYMMETRIC (memory of the rank's device) or BEELINE_HEAP_PINNED (host memory)
///   memory  freed by `beeline_free`
/// Blocks. BEELINE_INVALID_ARGUMENT if members pass different sizes, BEELINE_NO_RESOURCE if a member's heap is full.
/// Threads: one.
beeline_status beeline_allocate(beeline_team* team, size_t bytes, int32_t heap, void** memory) BEELINE_NOEXCEPT;
/// Collective. `count` zeroed signals of 8 bytes, in memory that their waiters can poll: as `beeline_allocate`, but in
/// teams with GPU ranks and host ranks always in host memory. Freed by `beeline_free`. Threads: one.
beeline_status beeline_allocate_signals(beeline_team* team, size_t count, int32_t heap,
                                        uint64_t** signals) BEELINE_NOEXCEPT;
/// Collective. Waits for this rank's default stream, then frees memory of the team; work on other streams must have
/// ended. NULL is refused. Threads: one.
beeline_status beeline_free(beeline_team* team, void* memory) BEELINE_NOEXCEPT;
/// The address on the member `peer` that corresponds to `local` in this rank's symmetric memory, for copies, and for
/// loads and stores where they reach the peer. Does not block. Threads: any.
beeline_status beeline_address_on(beeline_team* team, const void* local, int32_t peer, void** address) BEELINE_NOEXCEPT;

/// Collective. Makes a segment of zeroed memory. Each rank passes kind and size of its own part (0: no part).
///   segment  ended by `beeline_segment_destroy`
/// Blocks. BEELINE_NO_RESOURCE if memory is exhausted. Threads: one for the world.
beeline_status beeline_segment_create(beeline_world* world, int32_t kind, size_t bytes,
                                      beeline_segment** segment) BEELINE_NOEXCEPT;
/// The part of `rank`. Does not block. Threads: any.
beeline_status beeline_segment_part(const beeline_segment* segment, int32_t rank, beeline_part* part) BEELINE_NOEXCEPT;
/// Collective. Ends a segment, and then frees its handle. If the call fails, as when ranks pass different segments, the
/// handle stays valid. Threads: one for the world.
beeline_status beeline_segment_destroy(beeline_segment* segment) BEELINE_NOEXCEPT;

/// Collective. Gives all ranks access to memory that the program owns: host memory, or memory from cudaMalloc on the
/// rank's own GPU. The caller frees it after `beeline_deregister`.
///   pointer, bytes  aligned to 16 bytes, outside the world's memory, registered once; NULL and 0: no part
///   registered      ended by `beeline_deregister`
/// Blocks. BEELINE_INVALID_ARGUMENT, with the rank at fault, for other memory. Threads: one for the world.
beeline_status beeline_register(beeline_world* world, void* pointer, size_t bytes,
                                beeline_registered** registered) BEELINE_NOEXCEPT;
/// The part of `rank`. Does not block. Threads: any.
beeline_status beeline_registered_part(const beeline_registered* registered, int32_t rank,
                                       beeline_part* part) BEELINE_NOEXCEPT;
/// Sets `alias` to the symmetric address by which operations name the first byte of the part of a rank on another node;
/// to NULL in a world on one node. Does not block. Threads: any.
beeline_status beeline_registered_alias(const beeline_registered* registered, void** alias) BEELINE_NOEXCEPT;
/// Sets `symmetric` to the address in this rank's slot by which operations name `address`, in a segment or in a
/// distributed array, together with the rank that owns it. BEELINE_INVALID_ARGUMENT for other addresses. Does not
/// block. Threads: any.
beeline_status beeline_symmetric_address(beeline_world* world, const void* address, void** symmetric) BEELINE_NOEXCEPT;
/// Sets `kind` to the kind of the memory at `address`: BEELINE_MEMORY_DEVICE if only GPUs access it,
/// BEELINE_MEMORY_PINNED for host memory that CUDA has registered, else BEELINE_MEMORY_HOST, also for managed memory
/// and without a GPU. Does not block. Threads: any.
beeline_status beeline_memory_kind(const void* address, int32_t* kind) BEELINE_NOEXCEPT;
/// Collective. No rank may still copy to or from the memory. Frees the handle, unless the call fails. Threads: one for
/// the world.
beeline_status beeline_deregister(beeline_registered* registered) BEELINE_NOEXCEPT;

/// Copies between any two addresses that this process knows, of this rank or of another rank; the addresses determine
/// the direction. Blocks until the bytes have arrived; has no order with streams. BEELINE_INVALID_ARGUMENT if the
/// ranges overlap or leave the heap, BEELINE_UNREACHABLE for GPU memory that no GPU of this process reaches. Threads:
/// any.
beeline_status beeline_copy(beeline_world* world, void* destination, const void* source, size_t bytes) BEELINE_NOEXCEPT;
/// Copies to registered memory of `rank`, at `offset` in bytes; otherwise as `beeline_copy`. BEELINE_UNREACHABLE with
/// the reason. Threads: any.
beeline_status beeline_copy_to_registered(beeline_registered* registered, int32_t rank, size_t offset,
                                          const void* source, size_t bytes) BEELINE_NOEXCEPT;
/// Copies from registered memory; otherwise as `beeline_copy_to_registered`. Threads: any.
beeline_status beeline_copy_from_registered(void* destination, beeline_registered* registered, int32_t rank,
                                            size_t offset, size_t bytes) BEELINE_NOEXCEPT;

BEELINE_C_END

#endif
