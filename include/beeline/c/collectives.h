// SPDX-License-Identifier: Apache-2.0
/// @file
/// Collectives of a team. A call without a stream blocks until it has ended, after the earlier work of the default
/// stream, and returns its failures. A call with a stream returns at once and runs in the stream's order: its vectors
/// must not be changed until the stream has passed the call, and `beeline_synchronize` returns its failures.
///
/// Vectors are aligned to their elements, in any memory that the rank's kernels reach, and overlap only as stated;
/// symmetric memory saves copies. `count` is in elements. All members make the calls on one handle in the same order; a
/// difference aborts the team with a text that names both calls. A call with count 0 is a barrier.
///
/// Threads: one for each handle; threads that call collectives at the same time use different handles.
#ifndef BEELINE_C_COLLECTIVES_H
#define BEELINE_C_COLLECTIVES_H

#include "beeline/c/base.h"

BEELINE_C_BEGIN

/// Types of elements.
enum {
  BEELINE_FLOAT32 = 0,
  BEELINE_FLOAT64 = 1,
  BEELINE_FLOAT16 = 2,
  BEELINE_BFLOAT16 = 3,
  BEELINE_INT32 = 4,
  BEELINE_INT64 = 5,
  BEELINE_UINT8 = 6,
  BEELINE_UINT32 = 7,
  BEELINE_UINT64 = 8
};
/// Reductions. Elements are combined in the order of ranks, so that all members get the same bits. The bitwise
/// reductions are for integers.
enum {
  BEELINE_SUM = 0,
  BEELINE_PRODUCT = 1,
  BEELINE_MINIMUM = 2,
  BEELINE_MAXIMUM = 3,
  BEELINE_AVERAGE = 4,
  BEELINE_BIT_AND = 5,
  BEELINE_BIT_OR = 6,
  BEELINE_BIT_XOR = 7
};

/// Sizes of a channel, the same on all members. Zero-initialize the structure; a size of 0 is chosen by the kind and
/// number of members.
typedef struct beeline_collective_options {
  uint32_t struct_bytes;   ///< sizeof(beeline_collective_options)
  uint32_t sessions;       ///< largest number of blocks of a call
  uint64_t packet_bytes;   ///< payload of a member's packets in a round
  uint64_t staging_bytes;  ///< size of each of a session's areas for vectors that are not symmetric
  uint64_t engine_bytes;   ///< memory for large calls by copy engines; BEELINE_NO_ENGINE_BYTES: none
} beeline_collective_options;
#define BEELINE_NO_ENGINE_BYTES UINT64_MAX

/// How one call is made. Zero-initialize it, or pass NULL in its place.
typedef struct beeline_call {
  uint32_t struct_bytes;   ///< sizeof(beeline_call)
  int32_t algorithm;       ///< from `beeline_algorithm`, the same on all members; 0: automatic
  uint32_t blocks;         ///< the same on all members; 0: by size
  int32_t symmetric;       ///< 1: the caller asserts that the vectors are symmetric buffers
  int32_t overlapped;      ///< 1: other kernels run beside the call
  int32_t reserved;        ///< 0
  beeline_stream* stream;  ///< NULL: the call blocks
} beeline_call;

/// The pieces of `beeline_alltoallv` in elements: arrays of one value for each member, read before the call returns.
typedef struct beeline_pieces {
  uint32_t struct_bytes;  ///< sizeof(beeline_pieces)
  int32_t reserved;       ///< 0
  const size_t *send_counts, *send_offsets, *receive_counts, *receive_offsets;
} beeline_pieces;

/// The number of an algorithm, by its name in docs/collectives.md; -1 for an unknown name. Threads: any.
int32_t beeline_algorithm(const char* name) BEELINE_NOEXCEPT;

/// Collective. Makes a channel for the collectives of a team.
///   options      NULL: all sizes are chosen
///   collectives  ended by `beeline_collectives_destroy`, before the team
/// Blocks. BEELINE_NO_RESOURCE if the heap is full. Threads: one for the team.
beeline_status beeline_collectives_create(beeline_team* team, const beeline_collective_options* options,
                                          beeline_collectives** collectives) BEELINE_NOEXCEPT;
/// Collective. All calls must have ended. Threads: one for the team.
beeline_status beeline_collectives_destroy(beeline_collectives* collectives) BEELINE_NOEXCEPT;

/// Every member gets the combination of all members' vectors.
///   destination, source  [count]; may be the same
///   type                 BEELINE_FLOAT32, ...;  reduction  BEELINE_SUM, ...;  call  NULL: blocks
beeline_status beeline_allreduce(beeline_collectives* collectives, void* destination, const void* source, size_t count,
                                 int32_t type, int32_t reduction, const beeline_call* call) BEELINE_NOEXCEPT;
/// The root gets the combination.  destination  [count] at the root, otherwise ignored;  source  [count]
beeline_status beeline_reduce(beeline_collectives* collectives, void* destination, const void* source, size_t count,
                              int32_t type, int32_t reduction, int32_t root, const beeline_call* call) BEELINE_NOEXCEPT;
/// Member r gets part r of the combination.  destination  [count];  source  [members, count]
beeline_status beeline_reduce_scatter(beeline_collectives* collectives, void* destination, const void* source,
                                      size_t count, int32_t type, int32_t reduction,
                                      const beeline_call* call) BEELINE_NOEXCEPT;
/// All members get the root's vector.  destination  [count];  source  [count] at the root, may be its destination
beeline_status beeline_broadcast(beeline_collectives* collectives, void* destination, const void* source, size_t count,
                                 int32_t type, int32_t root, const beeline_call* call) BEELINE_NOEXCEPT;
/// Member r gets part r of the root's vector.  destination  [count];  source  [members, count] at the root
beeline_status beeline_scatter(beeline_collectives* collectives, void* destination, const void* source, size_t count,
                               int32_t type, int32_t root, const beeline_call* call) BEELINE_NOEXCEPT;
/// The root gets all vectors, in the order of ranks.  destination  [members, count] at the root;  source  [count]
beeline_status beeline_gather(beeline_collectives* collectives, void* destination, const void* source, size_t count,
                              int32_t type, int32_t root, const beeline_call* call) BEELINE_NOEXCEPT;
/// All members get all vectors, in the order of ranks.  destination  [members, count];  source  [count]
beeline_status beeline_allgather(beeline_collectives* collectives, void* destination, const void* source, size_t count,
                                 int32_t type, const beeline_call* call) BEELINE_NOEXCEPT;
/// Part j of member i's vector becomes part i of member j's vector. destination, source [members, count], which must
/// not overlap
beeline_status beeline_alltoall(beeline_collectives* collectives, void* destination, const void* source, size_t count,
                                int32_t type, const beeline_call* call) BEELINE_NOEXCEPT;
/// All-to-all with pieces of any lengths and positions. The length that a member expects from a peer equals the length
/// that the peer sends to it.
beeline_status beeline_alltoallv(beeline_collectives* collectives, void* destination, const void* source,
                                 const beeline_pieces* pieces, int32_t type, const beeline_call* call) BEELINE_NOEXCEPT;
/// Holds the stream (NULL: the calling thread, after the default stream) until all members have reached the call.
beeline_status beeline_collective_barrier(beeline_collectives* collectives, beeline_stream* stream) BEELINE_NOEXCEPT;

BEELINE_C_END

#endif
