// SPDX-License-Identifier: Apache-2.0
/// @file
/// Hybrid transfers: copies and puts that go directly up to a threshold, and above it through pinned buffers of this
/// rank (docs/hybrid.md). Staged transfers of one object use its buffers one after the other, in the order of the
/// calls.
#ifndef BEELINE_C_HYBRID_H
#define BEELINE_C_HYBRID_H

#include "beeline/c/base.h"

BEELINE_C_BEGIN

/// How transfers are divided. Zero-initialize the structure. 0: the setting's value.
typedef struct beeline_hybrid_options {
  uint32_t struct_bytes;     ///< sizeof(beeline_hybrid_options)
  uint32_t chunks;           ///< chunks in flight, 1 to 64: the number of buffers
  uint64_t threshold_bytes;  ///< bytes that go directly at most; if the setting is 0, too, the path decides
  uint64_t chunk_bytes;      ///< largest chunk
} beeline_hybrid_options;

/// Collective. Makes an object with `chunks` buffers of `chunk_bytes` in the pinned heap of each member.
///   options  NULL: all values are the settings'
///   hybrid   ended by `beeline_hybrid_destroy`
/// Blocks. BEELINE_INVALID_ARGUMENT if members pass different sizes, BEELINE_NO_RESOURCE if the pinned heap is full.
/// Threads: one for the team.
beeline_status beeline_hybrid_create(beeline_team* team, const beeline_hybrid_options* options,
                                     beeline_hybrid** hybrid) BEELINE_NOEXCEPT;
/// Collective. Waits for the object's transfers, and ends it. Threads: one for the team.
beeline_status beeline_hybrid_destroy(beeline_hybrid* hybrid) BEELINE_NOEXCEPT;
/// Sets the options of this rank's later transfers; 0: as created. BEELINE_INVALID_ARGUMENT, without effect, for chunks
/// that do not fit into the buffers. Does not block. Threads: any.
beeline_status beeline_hybrid_set(beeline_hybrid* hybrid, const beeline_hybrid_options* options) BEELINE_NOEXCEPT;
/// Sets `staged` to 1 if such a transfer would go through the buffers, to 0 if directly. Does not block. Threads: any.
beeline_status beeline_hybrid_is_staged(beeline_hybrid* hybrid, const void* destination, const void* source,
                                        size_t bytes, int32_t* staged) BEELINE_NOEXCEPT;

/// Copies `bytes` between any two addresses, as `beeline_copy`. Blocks until the bytes are in place. After
/// BEELINE_TIMEOUT the transfer goes on, and the same call continues to wait. Threads: any.
beeline_status beeline_hybrid_copy(beeline_hybrid* hybrid, void* destination, const void* source, size_t bytes,
                                   uint64_t timeout_ns) BEELINE_NOEXCEPT;
/// Copies `bytes` from local `source` to the symmetric address `destination` on the member `peer`; otherwise as
/// `beeline_hybrid_copy`. Threads: any.
beeline_status beeline_hybrid_put(beeline_hybrid* hybrid, void* destination, const void* source, size_t bytes,
                                  int32_t peer, uint64_t timeout_ns) BEELINE_NOEXCEPT;
/// `beeline_hybrid_copy` in the order of a stream (NULL: the default stream). Does not block. BEELINE_UNAVAILABLE for a
/// staged transfer while the stream is captured. Threads: any.
beeline_status beeline_hybrid_copy_on_stream(beeline_hybrid* hybrid, void* destination, const void* source,
                                             size_t bytes, beeline_stream* stream) BEELINE_NOEXCEPT;
/// `beeline_hybrid_put` in the order of a stream; otherwise as `beeline_hybrid_copy_on_stream`. Threads: any.
beeline_status beeline_hybrid_put_on_stream(beeline_hybrid* hybrid, void* destination, const void* source, size_t bytes,
                                            int32_t peer, beeline_stream* stream) BEELINE_NOEXCEPT;

BEELINE_C_END

#endif
