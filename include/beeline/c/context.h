// SPDX-License-Identifier: Apache-2.0
/// @file
/// The context that a kernel needs to communicate, for kernels that other compilers make: Fortran, Numba, Triton. Pass
/// it to a kernel by value, or copy it to memory that the kernel reads.
///
/// If `has_routes` is 0, the address on member p that corresponds to a symmetric address x of this rank is
/// x + ((int64_t)distances[p] << 32), for loads and stores. A kernel signals by a store with release order and system
/// scope, and waits by loads with acquire order and system scope, until it sees the value, `abort_words[team]` is not
/// 0, or `deadline_ns` nanoseconds have passed.
#ifndef BEELINE_C_CONTEXT_H
#define BEELINE_C_CONTEXT_H

#include "beeline/c/base.h"

BEELINE_C_BEGIN

/// Largest number of ranks of a node, and number of places of a context.
#define BEELINE_MAX_NODE_RANKS 64

/// The context. Each member's comment begins with its offset in bytes. The offsets may change with BEELINE_VERSION,
/// which `beeline_world_create` compares.
typedef struct beeline_context {
  uint8_t* range;               ///< 0: start of the address range in this process
  const uint64_t* abort_words;  ///< 8: [team] if not 0: the team is aborted, and waits have to end
  uint64_t* host_abort_words;   ///< 16: abort words for CPU threads
  void* waits;                  ///< 24: records of failed waits
  uint32_t* wait_claims;        ///< 32: number of records used
  void* sync;                   ///< 40: barrier state
  uint64_t deadline_ns;         ///< 48: longest duration of every wait
  uint32_t slot_shift;          ///< 56: log2 of the bytes of a rank's slot
  uint32_t slots;               ///< 60: number of ranks of the world
  uint32_t polling;             ///< 64: how CPU threads poll
  uint32_t team;                ///< 68: id of the team
  uint32_t rank;                ///< 72: the calling rank in the team
  uint32_t size;                ///< 76: number of members
  uint32_t own_world_rank;      ///< 80: the calling rank in the world
  uint8_t mixed;                ///< 84: whether the team has GPU ranks and host ranks
  uint8_t resident;             ///< 85: whether all threads that use the context run at once
  uint16_t kernel;              ///< 86: number of the kernel, for error texts; 0: none
  uint64_t gpu_members;         ///< 88: a bit for each place: set for a GPU rank
  uint64_t guarded_offsets;     ///< 96: bits of offsets in `range` at which kernels may lack atomics
  const void* routes;           ///< 104: NULL: loads and stores reach every member, and member p has place p
  uint64_t direct_places;       ///< 112: with routes: a bit for each place that holds a member
  uint32_t first_place;         ///< 120: rank of the team that has the first place
  uint32_t places;              ///< 124: places that are used
  uint32_t has_routes;          ///< 128: 0 or 1
  int32_t distances[BEELINE_MAX_NODE_RANKS];  ///< 132: distances of the members' slots from this rank's slot, in units
                                              ///< of 2^32 bytes
  uint64_t heap_end;                          ///< 392: end of the symmetric heap, in bytes from the start of a slot
  uint64_t pinned_heap_end;                   ///< 400: end of the pinned heap
  const void* checks;                         ///< 408: data by which CPU threads check arguments; NULL for kernels on a
                                              ///< GPU
} beeline_context;                            // 416 bytes

/// Copies the team's context for kernels of this rank. Does not block. Threads: any.
///   struct_bytes  sizeof(beeline_context): another size is refused
beeline_status beeline_team_context(const beeline_team* team, size_t struct_bytes,
                                    beeline_context* context) BEELINE_NOEXCEPT;
/// Copies the team's context for CPU threads of this rank.
beeline_status beeline_team_host_context(const beeline_team* team, size_t struct_bytes,
                                         beeline_context* context) BEELINE_NOEXCEPT;

BEELINE_C_END

#endif
