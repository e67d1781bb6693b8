// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Why a device operation was refused.

#include <cstdint>
#include <string>

namespace beeline {

/// What is wrong with a refused call. In its wait record this is `sequence`; `expected` is what the operation needs and
/// `observed` what it was given, as said here.
enum class CallFault : std::uint32_t {
  none,
  peer,                ///< not a rank of the team; members of the team, the peer
  not_symmetric,       ///< not in the calling rank's symmetric memory; bytes, the address
  null_address,        ///< no address; bytes, 0
  misaligned,          ///< bytes of the alignment, the address
  blocks_overlap,      ///< of a strided transfer's destination; elements of a block, the destination's stride
  blocks_too_far,      ///< a strided transfer beyond the end of the address space; blocks, the stride in elements
  no_signals,          ///< a wait for any of no signals; 1, 0
  partial_warp,        ///< a group that is not of whole warps; threads of a warp, threads of the group
  no_waits,            ///< a barrier of a grid that was launched without `LaunchOptions::waits`
  no_buffer,           ///< a bulk port without its shared memory; bytes of the buffer, 0
  cpu_in_gpu_memory,   ///< a CPU thread's load or store of GPU memory; bytes, the address
  no_route,            ///< no route leads to the peer; 0, its world rank
  by_engine_only,      ///< loads and stores of a peer that an engine reaches; 0, its world rank
  gpu_atomic_on_host,  ///< a kernel's read-modify-write of host memory that others may change; bytes, the address
  no_tag,              ///< a trigger of a tag that does not exist; tags, the tag
  no_task_queue,       ///< a task for a queue that there is not; queues, the queue
  no_function,         ///< a task of a function that is not in the list; functions, the function
  not_registered,      ///< found at the target: its rank has not registered the function; 0, the function
  wrong_arguments,     ///< bytes of the function's arguments, or at most, bytes of the task's
  long_payload,        ///< bytes that a payload of the function may have at the target, bytes of the task's
  waits_in_task        ///< a task that waits for a place in a queue which is not before its own; its queue, that queue
};

/// The fault in words, with what to do about it.
[[nodiscard]] std::string describe(CallFault fault, std::uint64_t expected, std::uint64_t observed);

}  // namespace beeline
