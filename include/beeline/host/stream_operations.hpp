// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One-sided operations in the order of a stream (control `stream`; GPUDirect Async): puts, signals, and waits for
/// signals. All are asynchronous, and begin when the stream's earlier work has ended. All can be captured in a CUDA
/// graph.
///
/// **Values in a graph.** A fixed value would be the same in each run of a graph. So in a graph, waits and the setting
/// of signals take a `sequence`: an 8-byte aligned word in memory of this rank that its kernels reach
/// (`World::allocate`). Each run of the call adds `value` to the word, and signals, or waits for, the sum. Several
/// calls, in graphs and outside of graphs, may use the same word if they run one after the other. Calls with fixed
/// values throw unavailable in a capture.
///
/// **Execution.** The device itself writes fixed values and waits for fixed values, without a kernel (CUDA's stream
/// memory operations). A kernel of one block carries out additions, puts of up to 64 KiB with their signal, and all
/// calls with a sequence. A copy engine carries out larger puts. Operations towards a peer that only this rank's engine
/// reaches, as a peer on another node, are posted to the engine by a kernel of one block (docs/network.md, Streams). In
/// a team with such peers a kernel waits for fixed values, too.
///
/// **Deadlines.** A wait with a sequence is a kernel of one thread with the deadline of kernels: its error names rank,
/// peer, expected and observed value. It is a waiting grid of one block (`LaunchOptions::waits`). The driver cannot
/// cancel a wait for a fixed value. If `World::synchronize` reaches its deadline, or the world is aborted,
/// `synchronize` writes the awaited value itself, so that the stream drains, and throws.
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
  std::uint64_t value = 1;            ///< the signal's new value; with a sequence: the increment of the sequence
  bool adds = false;                  ///< adds `value` to the signal, as `signal_add`; takes no sequence
  Stream* stream = nullptr;           ///< nullptr: the rank's default stream
  std::uint64_t* sequence = nullptr;  ///< see above; nullptr: `value` is fixed
};

/// A wait for a signal in the order of a stream.
struct WaitCall {
  const std::uint64_t* signal;  ///< in this rank's memory, 8-byte aligned
  std::uint64_t value = 1;      ///< value that the signal must reach; with a sequence: the increment of the sequence
  Stream* stream = nullptr;     ///< nullptr: the rank's default stream
  std::uint64_t* sequence = nullptr;  ///< see above; nullptr: `value` is fixed
  std::uint32_t peer = no_peer;       ///< rank that is expected to signal, for errors
};

/// Copies `bytes` from local `source` to `destination` on `peer`, a rank of the team.
///   destination  symmetric address;  source  any address of this rank's device, unchanged until the stream has passed
///   stream       nullptr: the rank's default stream
/// Completion: later work of the stream, also a signal, finds the data in place. Throws invalid_argument for a
/// bad peer, and for a destination that is not wholly in symmetric memory; otherwise the same as `Stream::copy`.
void put_on_stream(Team& team, void* destination, const void* source, std::size_t bytes, int peer,
                   Stream* stream = nullptr);

/// Sets, or adds to, a signal of `peer`, a rank of the team, after the stream's earlier work is visible there.
/// Throws invalid_argument as `put_on_stream`, and for a sequence with `adds`; unavailable for a fixed value in a
/// capture. If the kernel's operation is refused (device/access.hpp), `World::synchronize` throws.
void signal_on_stream(Team& team, int peer, const SignalCall& call);

/// `put_on_stream`, then `signal_on_stream`: a thread that acquires the signal's value sees the data. `bytes` may be 0.
/// Throws the errors of both; then nothing has been put.
void put_signal_on_stream(Team& team, void* destination, const void* source, std::size_t bytes, int peer,
                          const SignalCall& call);

/// Holds later work of the stream until `*signal` is at least the value; the data that the signal announced are then
/// visible to that work.
/// Throws invalid_argument for a null address, an address that is not aligned, or a bad peer; unavailable for a fixed
/// value in a capture; with a sequence also the errors of `launch`. A wait that reaches its deadline makes
/// `World::synchronize` throw: see Deadlines.
void wait_on_stream(Team& team, const WaitCall& call);

}  // namespace beeline
