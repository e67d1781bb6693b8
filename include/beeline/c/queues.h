// SPDX-License-Identifier: Apache-2.0
/// @file
/// Command queues: operations that CPU threads of a host rank post, and that the rank's engine carries out. The caller
/// neither moves the bytes nor waits for them. Commands of a queue towards one peer take effect in their order. After
/// the engine has refused a command (for memory that is not mapped), it refuses all later commands of the queue:
/// `beeline_queue_quiet` then returns BEELINE_INVALID_ARGUMENT with the reason.
#ifndef BEELINE_C_QUEUES_H
#define BEELINE_C_QUEUES_H

#include "beeline/c/base.h"

BEELINE_C_BEGIN

/// The engine that serves the queues. Zero-initialize the structure.
typedef struct beeline_queue_options {
  uint32_t struct_bytes;   ///< sizeof(beeline_queue_options)
  int32_t device_engine;   ///< 1: a block of the device serves the queues; 0: threads of the host
  int32_t engine_threads;  ///< 1 to 8: a separate engine with this number of threads; 0: the rank's engine
} beeline_queue_options;

/// Collective. Makes `count` queues, the same number on all members.
///   options  NULL: the rank's host engine
///   queues   ended by `beeline_queues_destroy`
/// Blocks. BEELINE_UNAVAILABLE if the rank cannot have such an engine, BEELINE_NO_RESOURCE if the heap is full.
/// Threads: one for the team.
beeline_status beeline_queues_create(beeline_team* team, uint32_t count, const beeline_queue_options* options,
                                     beeline_queues** queues) BEELINE_NOEXCEPT;
/// Collective. Waits for all posted commands, and ends the queues. Threads: one for the team.
beeline_status beeline_queues_destroy(beeline_queues* queues) BEELINE_NOEXCEPT;

/// Posts a copy of `bytes` from local `source` to `destination` on the member `peer`.
///   destination  symmetric address;  source  reusable after `beeline_queue_flush`
///   queue        0 to count - 1;  timeout_ns  limit of the wait for room in the queue: after BEELINE_TIMEOUT nothing
///                was posted
/// The data are visible at the peer after a later signal of the queue, or `beeline_queue_quiet`. BEELINE_UNREACHABLE
/// for CPU threads of a GPU rank, where only kernels may post. Threads: any.
beeline_status beeline_post_put(beeline_queues* queues, uint32_t queue, void* destination, const void* source,
                                size_t bytes, int32_t peer, uint64_t timeout_ns) BEELINE_NOEXCEPT;
/// Posts a copy from the symmetric address `source` on the member `peer` to local `destination`; the bytes have arrived
/// after `beeline_queue_quiet`. Threads: any.
beeline_status beeline_post_get(beeline_queues* queues, uint32_t queue, void* destination, const void* source,
                                size_t bytes, int32_t peer, uint64_t timeout_ns) BEELINE_NOEXCEPT;
/// Posts the setting of a signal, after everything posted to the queue before. Threads: any.
beeline_status beeline_post_signal(beeline_queues* queues, uint32_t queue, uint64_t* signal, uint64_t value,
                                   int32_t peer, uint64_t timeout_ns) BEELINE_NOEXCEPT;
/// Posts a put and its signal as one command. `bytes` may be 0. Threads: any.
beeline_status beeline_post_put_signal(beeline_queues* queues, uint32_t queue, void* destination, const void* source,
                                       size_t bytes, uint64_t* signal, uint64_t value, int32_t peer,
                                       uint64_t timeout_ns) BEELINE_NOEXCEPT;
/// Local completion: blocks until the sources of everything posted to the queue may be reused. Threads: any.
beeline_status beeline_queue_flush(beeline_queues* queues, uint32_t queue, uint64_t timeout_ns) BEELINE_NOEXCEPT;
/// Remote completion: blocks until everything posted to the queue is visible at its targets. Threads: any.
beeline_status beeline_queue_quiet(beeline_queues* queues, uint32_t queue, uint64_t timeout_ns) BEELINE_NOEXCEPT;

BEELINE_C_END

#endif
