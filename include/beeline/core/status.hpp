// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What an operation on a hot path returns, and the operations by name.

#include <cstdint>

#include "beeline/core/macros.hpp"

namespace beeline {

/// Result of an operation on a hot path. Set-up functions throw `Error` instead, with the same codes.
enum class Status : std::uint32_t {
  ok = 0,
  in_progress,       ///< not finished, nothing is wrong
  timeout,           ///< the call's own time-out passed; nothing is lost, the same call continues
  no_resource,       ///< a queue, table or the device is full; try again after progress
  deadline,          ///< the deadline passed while waiting; the team is aborted
  aborted,           ///< another participant aborted the team
  unreachable,       ///< no path to this memory from here; nothing was touched
  invalid_argument,  ///< refused before anything was touched
  unavailable,       ///< this machine or build lacks what the operation needs
  peer_died,         ///< a rank ended without leaving the world
  internal           ///< a failure below Beeline (driver, operating system)
};

/// The operations of the library: those that have methods (core/registry.hpp), and others that a wait belongs to, or
/// that were refused; named in errors and wait records.
enum class Operation : std::uint16_t {
  none = 0,
  wait,
  wait_any,
  grid_sync,
  packet_send,
  packet_receive,
  staged_send,
  staged_receive,
  stream_synchronize,
  setup,
  user,
  put,
  get,
  signal,
  signal_add,
  atomic,
  collective,  ///< a round of one
  send,        ///< of a message (`Messages`)
  receive,     ///< of a message
  exchange,
  at,  ///< `Context::at`
  flush,
  quiet,
  copy,     ///< posted: by the engine's device
  barrier,  ///< the first of the collective ones
  broadcast,
  scatter,
  gather,
  allgather,
  reduce,
  allreduce,
  reduce_scatter,
  alltoall,
  alltoallv
};
inline constexpr std::uint32_t operations = 34;

[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool failed(Status status) {
  return status != Status::ok && status != Status::in_progress;
}

/// The status's name as it appears in messages, in Python and in JSON.
[[nodiscard]] const char* name(Status status) noexcept;
/// The operation's name as it appears in messages, in Python and in JSON.
[[nodiscard]] const char* name(Operation operation) noexcept;

}  // namespace beeline
