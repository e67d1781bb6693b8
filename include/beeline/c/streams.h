// SPDX-License-Identifier: Apache-2.0
/// @file
/// Streams and events: in-order queues of copies, signals and collectives of a rank; and one-sided operations in the
/// order of streams. On a GPU rank a stream is a cudaStream_t, on a host rank a thread. All calls except waits return
/// at once.
#ifndef BEELINE_C_STREAMS_H
#define BEELINE_C_STREAMS_H

#include "beeline/c/base.h"

BEELINE_C_BEGIN

/// The rank's default stream, which ends with the world. NULL for a null handle. Threads: any.
beeline_stream* beeline_default_stream(beeline_world* world) BEELINE_NOEXCEPT;
/// Makes a new stream.
///   high_priority  1: its kernels start before kernels of other streams (GPU)
///   stream         ended by `beeline_stream_destroy`
/// Threads: any.
beeline_status beeline_stream_create(beeline_world* world, int32_t high_priority,
                                     beeline_stream** stream) BEELINE_NOEXCEPT;
/// Makes a handle for a stream that other code has made: `native` is a cudaStream_t of this rank's GPU (NULL: the
/// legacy default stream), which the program still owns. BEELINE_UNAVAILABLE on a host rank. Threads: any.
beeline_status beeline_stream_adopt(beeline_world* world, void* native, beeline_stream** stream) BEELINE_NOEXCEPT;
/// Waits for the stream's work, and ends it. Not for the default stream. Threads: one.
beeline_status beeline_stream_destroy(beeline_stream* stream) BEELINE_NOEXCEPT;
/// The cudaStream_t; NULL on a host rank and for a null handle. Threads: any.
void* beeline_stream_native(const beeline_stream* stream) BEELINE_NOEXCEPT;

/// Blocks until the stream's work has ended. Returns failures of the stream and of its kernels. After BEELINE_TIMEOUT
/// the work goes on, and a later call can wait for it. Threads: any.
beeline_status beeline_synchronize(beeline_stream* stream, uint64_t timeout_ns) BEELINE_NOEXCEPT;
/// Copies between any two addresses that this process knows. `source` stays unchanged until the stream has passed the
/// copy. Threads: any.
beeline_status beeline_copy_on_stream(beeline_stream* stream, void* destination, const void* source,
                                      size_t bytes) BEELINE_NOEXCEPT;
/// Sets every byte. Threads: any.
beeline_status beeline_fill_on_stream(beeline_stream* stream, void* destination, uint8_t value,
                                      size_t bytes) BEELINE_NOEXCEPT;

/// Makes an event of a stream's device, to be recorded on any of the rank's streams; ended by `beeline_event_destroy`.
/// Threads: any.
beeline_status beeline_event_create(beeline_stream* stream, beeline_event** event) BEELINE_NOEXCEPT;
/// Threads: one.
beeline_status beeline_event_destroy(beeline_event* event) BEELINE_NOEXCEPT;
/// Records the event after the stream's present work; replaces the earlier record. Threads: any.
beeline_status beeline_event_record(beeline_event* event, beeline_stream* stream) BEELINE_NOEXCEPT;
/// Holds later work of the stream until the work before the event's record has ended. Threads: any.
beeline_status beeline_stream_await(beeline_stream* stream, beeline_event* event) BEELINE_NOEXCEPT;
/// Blocks until the work before the record has ended; returns failures of that work. Threads: any.
beeline_status beeline_event_synchronize(beeline_event* event, uint64_t timeout_ns) BEELINE_NOEXCEPT;

/// Copies `bytes` from local `source` to `destination` on the member `peer`, in the stream's order.
///   destination  symmetric address;  source  any address of the rank's device, unchanged until the stream has passed
///   stream       NULL: the default stream
/// Later work of the stream, also a signal, finds the data in place. Threads: any.
beeline_status beeline_put_on_stream(beeline_team* team, void* destination, const void* source, size_t bytes,
                                     int32_t peer, beeline_stream* stream) BEELINE_NOEXCEPT;
/// Sets `signal` on the member `peer` to `value` after the stream's earlier work is visible there.
///   signal  symmetric address, 8-byte aligned
/// Threads: any.
beeline_status beeline_signal_on_stream(beeline_team* team, uint64_t* signal, uint64_t value, int32_t peer,
                                        beeline_stream* stream) BEELINE_NOEXCEPT;
/// `beeline_put_on_stream`, then `beeline_signal_on_stream`: a thread or kernel that waits for the signal's value sees
/// the data. `bytes` may be 0. Threads: any.
beeline_status beeline_put_signal_on_stream(beeline_team* team, void* destination, const void* source, size_t bytes,
                                            uint64_t* signal, uint64_t value, int32_t peer,
                                            beeline_stream* stream) BEELINE_NOEXCEPT;
/// Holds later work of the stream until `*signal >= value`; the signal is in this rank's memory. The data that the
/// signal announced are then visible to that work. A wait that reaches its deadline fails `beeline_synchronize`.
///   peer  member that is expected to signal, for error texts; BEELINE_ANY_RANK if any may
/// Threads: any.
beeline_status beeline_wait_on_stream(beeline_team* team, const uint64_t* signal, uint64_t value, int32_t peer,
                                      beeline_stream* stream) BEELINE_NOEXCEPT;

BEELINE_C_END

#endif
