// SPDX-License-Identifier: Apache-2.0
/// @file
/// Definitions for all functions of the C interface: statuses, error texts, handles, time-outs.
///
/// **Status and text.** Functions return BEELINE_OK or another status. After a status other than BEELINE_OK,
/// BEELINE_IN_PROGRESS and BEELINE_TIMEOUT, `beeline_last_error` returns a text, which begins with the function's name.
/// Outputs are written only with BEELINE_OK. No C++ exception leaves the library. A null handle or pointer, a structure
/// of another size, a rank outside the team and an unknown enumerator are refused with BEELINE_INVALID_ARGUMENT before
/// anything is touched; the text names function and argument.
///
/// **Time-outs and deadlines.** `timeout_ns` limits one call: 0 polls once, BEELINE_NO_TIMEOUT sets no limit. After
/// BEELINE_TIMEOUT nothing is lost, and the same call continues. The world's deadline ends every wait, also one without
/// a time-out: with BEELINE_DEADLINE, a text that names operation, rank, peer, expected and observed value, and an
/// aborted team.
///
/// **Threads.** Each function says which threads may call it at the same time. *Any*: all threads, without a lock.
/// *One*: one thread at a time for each handle; a second thread is refused with BEELINE_INVALID_ARGUMENT while the
/// first is in a call. Destroy a handle only when no other thread uses it.
#ifndef BEELINE_C_BASE_H
#define BEELINE_C_BASE_H

#include <stddef.h>
#include <stdint.h>

#include "beeline/core/version.h"

#if defined(__cplusplus)
#define BEELINE_NOEXCEPT noexcept
#define BEELINE_C_BEGIN extern "C" {
#define BEELINE_C_END }
#else
#define BEELINE_NOEXCEPT
#define BEELINE_C_BEGIN
#define BEELINE_C_END
#endif

BEELINE_C_BEGIN

/// Result of a function.
typedef int32_t beeline_status;
enum {
  BEELINE_OK = 0,
  BEELINE_IN_PROGRESS = 1,       ///< not finished, nothing is wrong
  BEELINE_TIMEOUT = 2,           ///< the call's own time-out passed; the same call continues
  BEELINE_NO_RESOURCE = 3,       ///< a queue, table, heap or the device is full
  BEELINE_DEADLINE = 4,          ///< the world's deadline passed; the team is aborted
  BEELINE_ABORTED = 5,           ///< a rank aborted the team
  BEELINE_UNREACHABLE = 6,       ///< no path from the caller to this memory; nothing was touched
  BEELINE_INVALID_ARGUMENT = 7,  ///< refused before anything was touched
  BEELINE_UNAVAILABLE = 8,       ///< the machine, the build or the library's version does not support the call
  BEELINE_PEER_DIED = 9,         ///< a rank ended without leaving the world
  BEELINE_INTERNAL = 10          ///< a failure below Beeline: driver, operating system
};

/// No limit but the world's deadline.
#define BEELINE_NO_TIMEOUT UINT64_MAX
/// A value for `peer` of a wait: any rank may signal.
#define BEELINE_ANY_RANK (-1)

/// Kinds of device on which a rank runs.
enum { BEELINE_HOST = 0, BEELINE_GPU = 1 };
/// The heap of an allocation: memory of the rank's device, or host memory on all ranks.
enum { BEELINE_HEAP_SYMMETRIC = 0, BEELINE_HEAP_PINNED = 1 };
/// Kinds of memory of a segment.
enum { BEELINE_MEMORY_DEVICE = 0, BEELINE_MEMORY_PINNED = 1, BEELINE_MEMORY_HOST = 2 };
/// How a wait compares: observed value <compare> given value.
enum {
  BEELINE_EQUAL = 0,
  BEELINE_NOT_EQUAL = 1,
  BEELINE_GREATER = 2,
  BEELINE_GREATER_EQUAL = 3,
  BEELINE_LESS = 4,
  BEELINE_LESS_EQUAL = 5
};
/// How this rank reaches a member of a team: by loads and stores, by commands to an engine, not at all.
enum { BEELINE_ROUTE_DIRECT = 0, BEELINE_ROUTE_ENGINE = 1, BEELINE_ROUTE_REFUSED = 2 };
/// The state of a rank.
enum { BEELINE_HEALTHY = 0, BEELINE_FAILED = 1, BEELINE_LEFT = 2 };

/// Opaque handles. A function that makes a handle writes it to its last argument; its comment names the function that
/// ends the handle.
typedef struct beeline_config beeline_config;
typedef struct beeline_world beeline_world;
typedef struct beeline_team beeline_team;
typedef struct beeline_stream beeline_stream;
typedef struct beeline_event beeline_event;
typedef struct beeline_segment beeline_segment;
typedef struct beeline_registered beeline_registered;
typedef struct beeline_queues beeline_queues;
typedef struct beeline_batch beeline_batch;
typedef struct beeline_hybrid beeline_hybrid;
typedef struct beeline_collectives beeline_collectives;
typedef struct beeline_messages beeline_messages;
typedef struct beeline_array beeline_array;
typedef struct beeline_triggers beeline_triggers;

/// The text of the last failure of a function in the calling thread; empty before the first failure. Never NULL. Valid
/// until the thread's next failure. Threads: any.
const char* beeline_last_error(void) BEELINE_NOEXCEPT;
/// The status's name, such as invalid_argument; "unknown" for other numbers. Threads: any.
const char* beeline_status_name(beeline_status status) BEELINE_NOEXCEPT;
/// BEELINE_VERSION of the library. Threads: any.
int32_t beeline_version(void) BEELINE_NOEXCEPT;

BEELINE_C_END

#endif
