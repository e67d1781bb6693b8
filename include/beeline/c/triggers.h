// SPDX-License-Identifier: Apache-2.0
/// @file
/// Triggered operations: the host arms an operation for a *tag*; it starts when the tag's count reaches its threshold.
/// Kernels and CPU threads count (docs/triggers.md). A threshold that is not reached by the deadline aborts the team,
/// with a text that names tag, count and threshold.
#ifndef BEELINE_C_TRIGGERS_H
#define BEELINE_C_TRIGGERS_H

#include "beeline/c/base.h"

BEELINE_C_BEGIN

/// The part of the system that waits for counts and carries out the operations: the rank's engine; a block of the
/// device; streams; streams whose operations can be cancelled.
enum { BEELINE_BY_ENGINE = 0, BEELINE_BY_DEVICE_ENGINE = 1, BEELINE_BY_STREAM = 2, BEELINE_BY_GUARDED_STREAM = 3 };

/// Options of triggers, the same on all members. Zero-initialize the structure; 0 means the default.
typedef struct beeline_trigger_options {
  uint32_t struct_bytes;  ///< sizeof(beeline_trigger_options)
  int32_t by;             ///< BEELINE_BY_ENGINE, ...
  uint32_t tags;          ///< tags are 0 to tags - 1; by default 4096
  uint32_t entries;       ///< engines: largest number of operations that are armed or in progress; by default 4096
  uint32_t queues;        ///< engines: tag t uses queue t % queues; queues do not wait for each other; by default 1
  uint32_t streams;       ///< streams: largest number of tags with armed operations, up to 16; by default 2
} beeline_trigger_options;

/// When an operation starts. Zero-initialize it.
typedef struct beeline_condition {
  uint32_t struct_bytes;  ///< sizeof(beeline_condition)
  uint32_t tag;           ///< tag whose count is compared
  uint64_t threshold;     ///< count at which the operation starts; at least 1
  int64_t deadline_ns;    ///< deadline of the wait, from arming or the tag's last trigger; 0: the world's
  uint32_t then;          ///< with `chains`: tag that the operation triggers when it has ended
  int32_t chains;         ///< 0 or 1
} beeline_condition;

/// An operation that was armed, for `beeline_armed_wait` and `beeline_armed_cancel`.
typedef struct beeline_armed {
  uint32_t entry, turn;
} beeline_armed;

/// Collective. Makes the tags of this rank.
///   options   NULL: the defaults, with the rank's engine
///   triggers  ended by `beeline_triggers_destroy`
/// Blocks. BEELINE_UNAVAILABLE if the rank cannot have such an engine, BEELINE_NO_RESOURCE if the heap is full.
/// Threads: one for the team.
beeline_status beeline_triggers_create(beeline_team* team, const beeline_trigger_options* options,
                                       beeline_triggers** triggers) BEELINE_NOEXCEPT;
/// Collective. Waits for triggered operations, and cancels those that are still armed. Threads: one for the team.
beeline_status beeline_triggers_destroy(beeline_triggers* triggers) BEELINE_NOEXCEPT;

/// Arms a copy of `bytes` from local `source` to `destination` on the member `peer`, followed, unless `signal` is NULL,
/// by the setting of `signal` on `peer` to `value`.
///   destination, signal  symmetric addresses;  source  read when the operation starts, unchanged until it has ended
///   armed                NULL if the operation is neither waited for nor cancelled
/// Does not block. BEELINE_NO_RESOURCE if `entries` operations are armed or no stream is free; BEELINE_UNREACHABLE for
/// memory that the engine does not reach. Threads: any.
beeline_status beeline_arm_put(beeline_triggers* triggers, const beeline_condition* when, void* destination,
                               const void* source, size_t bytes, uint64_t* signal, uint64_t value, int32_t peer,
                               beeline_armed* armed) BEELINE_NOEXCEPT;
/// Arms a copy from `source` on `peer` to local `destination`; `signal` is a signal of this rank. Otherwise the same as
/// `beeline_arm_put`.
beeline_status beeline_arm_get(beeline_triggers* triggers, const beeline_condition* when, void* destination,
                               const void* source, size_t bytes, uint64_t* signal, uint64_t value, int32_t peer,
                               beeline_armed* armed) BEELINE_NOEXCEPT;
/// Arms the setting of `signal` on `peer` to `value`. Otherwise the same as `beeline_arm_put`.
beeline_status beeline_arm_signal(beeline_triggers* triggers, const beeline_condition* when, uint64_t* signal,
                                  uint64_t value, int32_t peer, beeline_armed* armed) BEELINE_NOEXCEPT;
/// Adds `count` to the tag's count. Earlier writes of the thread are visible to the operations that start. Does not
/// block. BEELINE_UNAVAILABLE for streams of a GPU. Threads: any.
beeline_status beeline_trigger(beeline_triggers* triggers, uint32_t tag, uint64_t count) BEELINE_NOEXCEPT;
/// Sets `reached` to the tag's count. Does not block. Threads: any.
beeline_status beeline_trigger_count(const beeline_triggers* triggers, uint32_t tag,
                                     uint64_t* reached) BEELINE_NOEXCEPT;
/// Blocks until the operation has ended or was cancelled. BEELINE_INVALID_ARGUMENT with the reason if the engine has
/// refused the operation. Threads: any.
beeline_status beeline_armed_wait(beeline_triggers* triggers, const beeline_armed* armed,
                                  uint64_t timeout_ns) BEELINE_NOEXCEPT;
/// BEELINE_OK: the operation never starts; BEELINE_IN_PROGRESS: it has started. BEELINE_UNAVAILABLE for streams without
/// a guard. Threads: any.
beeline_status beeline_armed_cancel(beeline_triggers* triggers, const beeline_armed* armed) BEELINE_NOEXCEPT;

BEELINE_C_END

#endif
