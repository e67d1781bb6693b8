// SPDX-License-Identifier: Apache-2.0
/// @file
/// Batches: many short puts and signals of a CPU thread to one member, with one completion (docs/batches.md). A batch
/// is begun, filled and ended again and again. The puts of a batch have no order among each other; a signal of the
/// batch is set once all puts before it are in place. One thread at a time uses an object.
#ifndef BEELINE_C_BATCHES_H
#define BEELINE_C_BATCHES_H

#include "beeline/c/base.h"

BEELINE_C_BEGIN

/// Collective. Makes an object for batches.
///   capacity  operations for which an engine has room, the same on all members, at least 1: a longer batch is split,
///             and waits for the engine
///   batch     ended by `beeline_batch_destroy`
/// Blocks. BEELINE_NO_RESOURCE if the pinned heap is full. Threads: one for the team.
beeline_status beeline_batch_create(beeline_team* team, uint32_t capacity, beeline_batch** batch) BEELINE_NOEXCEPT;
/// Collective. Waits for the batches that were ended, and ends the object. Threads: one for the team.
beeline_status beeline_batch_destroy(beeline_batch* batch) BEELINE_NOEXCEPT;

/// Begins a batch to the member `peer`, as an operation of `queue`. BEELINE_INVALID_ARGUMENT if the last batch has not
/// ended. Threads: one at a time for an object, as all functions below.
beeline_status beeline_batch_begin(beeline_batch* batch, int32_t peer, uint32_t queue) BEELINE_NOEXCEPT;
/// Copies `bytes` from local `source` to the symmetric address `destination`; see `beeline_put`. Up to 16 bytes may be
/// reused on return, longer sources after `beeline_flush`. A put that is refused aborts the team; then all later calls
/// of the batch do nothing, and return its status.
beeline_status beeline_batch_put(beeline_batch* batch, void* destination, const void* source,
                                 size_t bytes) BEELINE_NOEXCEPT;
/// Sets `signal` to `value` once all earlier puts of the batch are in place; see `beeline_signal`.
beeline_status beeline_batch_signal(beeline_batch* batch, uint64_t* signal, uint64_t value) BEELINE_NOEXCEPT;
/// Adds `value` to the signal; otherwise as `beeline_batch_signal`.
beeline_status beeline_batch_signal_add(beeline_batch* batch, uint64_t* signal, uint64_t value) BEELINE_NOEXCEPT;
/// Ends the batch: from now on it is carried out. Does not wait for the peer; `beeline_flush` and `beeline_quiet` of
/// the queue cover it. Returns the first status of a call since the begin that was not BEELINE_OK.
beeline_status beeline_batch_end(beeline_batch* batch) BEELINE_NOEXCEPT;

BEELINE_C_END

#endif
