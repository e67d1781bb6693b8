// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One-sided transfers with a signal in the order of a stream.

#include <cstddef>
#include <cstdint>

#include "beeline/host/team.hpp"
#include "beeline/transport/stream.hpp"

namespace beeline {

/// The signal behind a `put_signal_on_stream`.
struct SignalCall {
  std::uint64_t* signal;  ///< symmetric address, 8-byte aligned
  std::uint64_t value = 1;
  bool adds = false;         ///< to the signal, as `signal_add`; otherwise sets it
  Stream* stream = nullptr;  ///< nullptr: the rank's default stream
};

/// Copies `bytes` (0: none) from local `source` to `destination` on `peer`, a rank of the team, then sets or adds to a
/// signal there. Asynchronous, after the stream's earlier work; can be captured in a graph, each run of which adds.
///   destination  symmetric address;  source  any address of this rank's device, unchanged until the stream has passed
/// A kernel does it, so it is refused where `put_signal` and `put_signal_add` of kernels are (device/access.hpp):
/// `World::synchronize` throws then. Throws invalid_argument for what lies outside of symmetric memory.
/// Source: NVSHMEM, nvshmemx_putmem_signal_on_stream.
void put_signal_on_stream(Team& team, void* destination, const void* source, std::size_t bytes, int peer,
                          const SignalCall& call);

}  // namespace beeline
