// SPDX-License-Identifier: Apache-2.0
/// @file
/// One-sided operations by CPU threads: puts, gets, signals, waits. The operations reach host memory: all memory of
/// host ranks, and the pinned heap of GPU ranks; GPU memory is BEELINE_UNREACHABLE (use streams.h). On the same node
/// loads and stores carry out the operations, between nodes an engine.
///
/// Each operation belongs to a queue, 0 to 31. Operations of one queue to one peer are done in their order, signals
/// included; operations of different queues have no order. Threads that use different queues are independent.
///
/// An address outside symmetric memory, or a word that is not aligned, is refused with BEELINE_INVALID_ARGUMENT or
/// BEELINE_UNREACHABLE, and aborts the team, since another rank may wait for the effect. Null pointers and bad peers
/// are refused without aborting the team.
#ifndef BEELINE_C_TRANSFERS_H
#define BEELINE_C_TRANSFERS_H

#include "beeline/c/base.h"

BEELINE_C_BEGIN

/// Copies `bytes` from local `source` to `destination` on the member `peer`.
///   destination  symmetric address
///   source       any local address; reusable on return, or, if an engine carries the put, after `beeline_flush`
/// Does not wait for the peer. The data are visible at the peer after a later signal of this queue, or `beeline_quiet`.
/// Threads: any.
beeline_status beeline_put(beeline_team* team, void* destination, const void* source, size_t bytes, int32_t peer,
                           uint32_t queue) BEELINE_NOEXCEPT;
/// Copies `bytes` from the symmetric address `source` on the member `peer` to local `destination`. Blocks until the
/// bytes have arrived. Threads: any.
beeline_status beeline_get(beeline_team* team, void* destination, const void* source, size_t bytes,
                           int32_t peer) BEELINE_NOEXCEPT;
/// Sets `signal` on the member `peer` to `value` after all earlier writes of this thread are visible there.
///   signal  symmetric address, 8-byte aligned
/// Does not block. In a loop let the values grow, and wait for BEELINE_GREATER_EQUAL. Threads: any.
beeline_status beeline_signal(beeline_team* team, uint64_t* signal, uint64_t value, int32_t peer,
                              uint32_t queue) BEELINE_NOEXCEPT;
/// Adds `value` to the signal: the sum of many senders is exact. Otherwise as `beeline_signal`. Threads: any.
beeline_status beeline_signal_add(beeline_team* team, uint64_t* signal, uint64_t value, int32_t peer,
                                  uint32_t queue) BEELINE_NOEXCEPT;
/// `beeline_put`, then `beeline_signal`: a thread at the peer that waits for the signal's value sees the data.
/// Threads: any.
beeline_status beeline_put_signal(beeline_team* team, void* destination, const void* source, size_t bytes,
                                  uint64_t* signal, uint64_t value, int32_t peer, uint32_t queue) BEELINE_NOEXCEPT;
/// `beeline_put`, then `beeline_signal_add`. Threads: any.
beeline_status beeline_put_signal_add(beeline_team* team, void* destination, const void* source, size_t bytes,
                                      uint64_t* signal, uint64_t value, int32_t peer, uint32_t queue) BEELINE_NOEXCEPT;

/// Blocks until the local `signal` <compare> `value` holds; the data that the signal announced are then visible.
///   signal  8-byte aligned, in host memory;  compare  BEELINE_EQUAL, ...
///   peer    member that is expected to signal, for error texts; BEELINE_ANY_RANK if any may
/// Also returns BEELINE_TIMEOUT, BEELINE_DEADLINE or BEELINE_ABORTED. Threads: any, also for the same signal.
beeline_status beeline_wait(beeline_team* team, const uint64_t* signal, int32_t compare, uint64_t value, int32_t peer,
                            uint64_t timeout_ns) BEELINE_NOEXCEPT;
/// Blocks until one of `signals` [count] is not 0, and sets `index` to the index of the first such signal. Several
/// threads may wait for the same signals: each then calls `beeline_exchange` with 0, and exactly one of them gets the
/// value. Threads: any.
beeline_status beeline_wait_any(beeline_team* team, const uint64_t* signals, uint32_t count, uint64_t timeout_ns,
                                uint32_t* index) BEELINE_NOEXCEPT;
/// BEELINE_OK if the comparison holds now, with the data visible; BEELINE_IN_PROGRESS if not. Does not block. Threads:
/// any.
beeline_status beeline_test_signal(const uint64_t* signal, int32_t compare, uint64_t value) BEELINE_NOEXCEPT;
/// Sets the local `signal`, and `before` to its old value, in one atomic operation. Does not block. Threads: any.
beeline_status beeline_exchange(beeline_team* team, uint64_t* signal, uint64_t value,
                                uint64_t* before) BEELINE_NOEXCEPT;

/// Adds `value` to the word `target` of the member `peer`, and sets `before` to its old value.
///   target  symmetric address, 8-byte aligned, in host memory
/// Blocks until the old value has arrived. Atomic towards all CPU threads; orders no other access. Threads: any.
beeline_status beeline_fetch_add(beeline_team* team, uint64_t* target, uint64_t value, int32_t peer,
                                 uint64_t* before) BEELINE_NOEXCEPT;
/// Sets the word `target` of the member `peer` to `value` if it equals `expected`; otherwise as `beeline_fetch_add`.
beeline_status beeline_compare_swap(beeline_team* team, uint64_t* target, uint64_t expected, uint64_t value,
                                    int32_t peer, uint64_t* before) BEELINE_NOEXCEPT;

/// Local completion: on return the sources of the queue's puts may be reused. Blocks. Threads: any.
beeline_status beeline_flush(beeline_team* team, uint32_t queue) BEELINE_NOEXCEPT;
/// `beeline_flush` with a limit: after BEELINE_TIMEOUT the same call continues. Threads: any.
beeline_status beeline_flush_within(beeline_team* team, uint32_t queue, uint64_t timeout_ns) BEELINE_NOEXCEPT;
/// Remote completion: on return the queue's puts are visible at their targets. Blocks. Threads: any.
beeline_status beeline_quiet(beeline_team* team, uint32_t queue) BEELINE_NOEXCEPT;
/// `beeline_quiet` with a limit: after BEELINE_TIMEOUT the same call continues. Threads: any.
beeline_status beeline_quiet_within(beeline_team* team, uint32_t queue, uint64_t timeout_ns) BEELINE_NOEXCEPT;

BEELINE_C_END

#endif
