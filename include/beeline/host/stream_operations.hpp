// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One-sided operations in the order of a stream (control `stream`; GPUDirect Async): puts, signals, and waits for
/// signals. All are asynchronous, and begin when the stream's earlier work is over. All can be captured in a CUDA
/// graph.
///
/// **Values in a graph.** A value that is fixed when a call is captured would be the same in each run of the graph. So
/// signals that are set, and waits, take a `sequence` there: a word in memory of this rank that its kernels reach
/// (`World::allocate`), 8-byte aligned. Each run of the call adds `value` to it, and signals, or waits for, the sum.
/// The same word may serve any calls, of several graphs and outside of graphs, that run one after the other. Calls with
/// fixed values throw unavailable in a capture.
///
/// **What carries it out.** A fixed value is written, and waited for, by the device itself: no thread of a kernel runs
/// (CUDA's stream memory operations). What adds, puts up to 64 KiB with their signal, and everything with a sequence is
/// done by a small kernel of one block, larger puts by a copy engine.
///
/// **Deadlines.** A wait with a sequence is a kernel of one thread with the deadline of kernels: its error names rank,
/// peer, expected and observed value. It is a waiting grid of one block (`LaunchOptions::waits`). One for a fixed value
/// cannot be cancelled in the driver: where `World::synchronize` reaches its deadline, or the world is aborted, it
/// writes the awaited value itself, so that the stream drains, and throws.
///
/// Source: seed 003, GPUDirect Async; NVSHMEM, nvshmemx_putmem_signal_on_stream and its like.

#include <cstddef>
#include <cstdint>

#include "beeline/device/wait.hpp"
#include "beeline/host/team.hpp"
#include "beeline/transport/stream.hpp"

namespace beeline {

/// A signal in the order of a stream.
struct SignalCall {
  std::uint64_t* signal;              ///< symmetric address, 8-byte aligned
  std::uint64_t value = 1;            ///< what the signal is set to; with a sequence: what is added to that
  bool adds = false;                  ///< `value` to the signal, as `signal_add`; takes no sequence
  Stream* stream = nullptr;           ///< nullptr: the rank's default stream
  std::uint64_t* sequence = nullptr;  ///< see above; nullptr: `value` is fixed
};

/// A wait for a signal in the order of a stream.
struct WaitCall {
  const std::uint64_t* signal;        ///< in this rank's memory, 8-byte aligned
  std::uint64_t value = 1;            ///< that the signal must reach; with a sequence: what is added to that
  Stream* stream = nullptr;           ///< nullptr: the rank's default stream
  std::uint64_t* sequence = nullptr;  ///< see above; nullptr: `value` is fixed
  std::uint32_t peer = no_peer;       ///< the rank expected to signal, named in errors
};

/// Copies `bytes` from local `source` to `destination` on `peer`, a rank of the team.
///   destination  symmetric address;  source  any address of this rank's device, unchanged until the stream has passed
///   stream       nullptr: the rank's default stream
/// Later work of the stream, also a signal, finds it in place. Throws invalid_argument for what lies outside of
/// symmetric memory or a bad peer, and as `Stream::copy`.
void put_on_stream(Team& team, void* destination, const void* source, std::size_t bytes, int peer,
                   Stream* stream = nullptr);

/// Sets, or adds to, a signal of `peer`, a rank of the team, after the stream's earlier work is visible there.
/// Throws invalid_argument as `put_on_stream`, and for a sequence with `adds`; unavailable for a fixed value in a
/// capture. A kernel that is refused (device/access.hpp) makes `World::synchronize` throw.
void signal_on_stream(Team& team, int peer, const SignalCall& call);

/// `put_on_stream`, then `signal_on_stream`: a thread that acquires the signal's value sees the data. `bytes` may be 0.
/// Throws as both do; nothing was put then.
void put_signal_on_stream(Team& team, void* destination, const void* source, std::size_t bytes, int peer,
                          const SignalCall& call);

/// Holds later work of the stream until `*signal` is at least the value; then the data that it announced is visible to
/// that work.
/// Throws invalid_argument for a null address, one that is not aligned, or a bad peer; unavailable for a fixed value in
/// a capture; with a sequence as `launch`. A wait that reaches its deadline makes `World::synchronize` throw: see
/// Deadlines.
void wait_on_stream(Team& team, const WaitCall& call);

}  // namespace beeline
