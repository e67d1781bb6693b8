// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Why a device operation was refused.

#include <cstdint>
#include <string>

namespace beeline {

/// What is wrong with a refused call. The call's wait record has this number in `sequence`. After the semicolon each
/// row names the contents of the record's `expected` (the value that the operation needs) and `observed` (the value
/// that it got).
enum class CallFault : std::uint32_t {
  none,
  peer,                ///< the peer is not a rank of the team; size of the team, the peer
  not_symmetric,       ///< the range is not in the calling rank's symmetric memory; its bytes, its address
  null_address,        ///< a null address; bytes of the range, 0
  misaligned,          ///< a misaligned address; alignment in bytes, the address
  blocks_overlap,      ///< overlapping destination blocks; elements of a block, destination stride in elements
  blocks_too_far,      ///< a strided transfer beyond the address space; number of blocks, stride in elements
  no_signals,          ///< a wait for any of no signals; 1, 0
  partial_warp,        ///< a group with a partial warp; threads of a warp, threads of the group
  no_waits,            ///< a barrier of a grid that was launched without `LaunchOptions::waits`; 0, 0
  no_buffer,           ///< a bulk port without its shared memory; bytes of the buffer, 0
  cpu_in_gpu_memory,   ///< a CPU thread's load or store of GPU memory; bytes of the access, the address
  no_route,            ///< there is no route to the peer; 0, the peer's world rank
  by_engine_only,      ///< loads or stores for a peer that only an engine reaches; 0, the peer's world rank
  gpu_atomic_on_host,  ///< a kernel's read-modify-write of host memory that CPUs or other GPUs may change; bytes of the
                       ///< word, the address
  no_tag,              ///< a trigger for a tag that does not exist; number of tags, the tag
  no_task_queue,       ///< a task for a queue that does not exist; number of queues, the queue
  no_function,         ///< a task of a function that is not in the list; number of functions, the function
  not_registered,      ///< the target has not registered the function (the target detects this); 0, the function
  wrong_arguments,    ///< wrong size of a task's arguments; the function's bytes, or the largest size, the task's bytes
  long_payload,       ///< a task's payload is too long; largest payload in bytes at the target, the task's bytes
  waits_in_task,      ///< a task waits for a free cell in a queue that is not before its own; its own queue, the other
                      ///< queue
  not_allocated,      ///< the range is not in one allocation of the calling rank; its bytes, its address
  null_own_end,       ///< a null address at the calling rank's end of a transfer; its bytes, 0
  own_end_elsewhere,  ///< the calling rank's end of a transfer is memory of another node; its rank, its address
  own_end_on_gpu,   ///< a CPU thread's transfer from or to symmetric GPU memory at its own end; its bytes, its address
  batch_is_open,    ///< a batch begins that has not ended; 0, 0
  batch_is_closed,  ///< a put, a signal or an end of a batch that has not begun; 0, 0
  no_entries,       ///< a batch to a peer that an engine reaches, without memory for its entries; 0, 0
  forked            ///< the process is a fork of the process that made the world; 0, 0
};

/// Describes the fault in words, with what to do about it.
[[nodiscard]] std::string describe(CallFault fault, std::uint64_t expected, std::uint64_t observed);

}  // namespace beeline
