// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Active messages as they lie in memory: what posters, workers and the host share (docs/control.md, Tasks).
///
/// Each target has a ring for every queue and every poster, in its own memory. A ring has one poster, the rank, whose
/// threads share the tickets in the rank's memory, and one worker; each word has one writer:
///
///   poster                                      worker of the target, in the order of the ring
///     waits until ticket < done + depth; its ticket = next++
///     payload -> its slot of the buffer
///     commands[ticket % depth], sequence last ->  checks it, runs the function
///     completion                             <-   reply signal;  done = ticket + 1: in the poster's memory

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/core/layout.hpp"
#include "beeline/core/macros.hpp"

namespace beeline {

/// Bytes of a task's arguments at most.
inline constexpr std::uint32_t max_task_arguments = 256;

/// One task. `sequence` is stored last, and releases the rest.
struct alignas(64) TaskCommand {
  std::uint64_t sequence;  ///< ticket + 1
  std::uint32_t function;  ///< its index in the task list
  std::uint32_t argument_bytes;
  std::uint64_t payload_bytes;
  std::uint64_t reply;  ///< offset in the poster's slot of the signal that is set when it has run; 0: none
  std::uint64_t reply_value;
  std::uint64_t unused;
  alignas(16) std::byte arguments[max_task_arguments];
};
static_assert(std::is_trivially_copyable_v<TaskCommand> && sizeof(TaskCommand) == 320);
static_assert(offsetof(TaskCommand, function) == 8 && offsetof(TaskCommand, argument_bytes) == 12);
static_assert(offsetof(TaskCommand, payload_bytes) == 16 && offsetof(TaskCommand, reply) == 24);
static_assert(offsetof(TaskCommand, reply_value) == 32 && offsetof(TaskCommand, arguments) == 48);

/// What a rank's threads share that post to a ring, in the rank's memory.
struct TaskTickets {
  alignas(64) std::uint64_t next;  ///< tasks posted, or being written; theirs
  alignas(64) std::uint64_t done;  ///< tasks that the target has run; written by its worker
};

/// What a target has for a function. Every member has it of all.
struct TaskPlace {
  std::uint64_t payloads;       ///< offset in the target's slot of its buffer
  std::uint64_t payload_bytes;  ///< room for the payload of one task: the buffer has one for each that is under way
};

/// What a function finds at its target; only there.
struct TaskTarget {
  void* object;               ///< what the function works on
  std::uint64_t* completion;  ///< counts the tasks that have run; nullptr: none
  std::uint64_t registered;   ///< 1: the function may run
};

/// The task that a worker runs, for errors.
struct RunningTask {
  alignas(64) std::uint64_t since;  ///< tasks that the worker has begun; 0 in `function`: it runs none
  std::uint32_t function;           ///< its index + 1
  std::uint32_t poster;             ///< world rank
};

/// Outside of tasks.
inline constexpr std::uint32_t outside_tasks = 0xffffffffu;

/// What `Tasks` makes, for kernels, by value.
struct TaskChannel {
  TaskCommand* commands;  ///< [queues, members, depth] of this rank as target; symmetric
  TaskTickets* tickets;   ///< [queues, members] of this rank as poster: of its posts to each member; symmetric
  TaskPlace* places;      ///< [members, functions]
  std::uint64_t* asleep;  ///< [members] whether a member's workers have ended; symmetric, written by them
  std::uint64_t* wanted;  ///< set by who posts to workers that have ended; symmetric, in host memory
  std::uint32_t queues, members, depth, functions;
  std::uint32_t running;  ///< queue of the task that has this channel; `outside_tasks` outside of tasks

  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t ring(std::uint32_t queue, std::uint32_t member) const {
    return std::size_t{queue} * members + member;
  }
};
static_assert(std::is_trivially_copyable_v<TaskChannel>);

}  // namespace beeline
