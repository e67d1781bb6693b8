// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The layout in memory of active messages (tasks), which posters, workers and the host share (docs/tasks.md).
///
/// Each target has, in its own memory, a ring for every queue and every poster. A poster is a rank, whose threads share
/// the ring's tickets in the rank's memory. Each ring has one worker. A slot of the ring is an array of words, each
/// stored together with the task's sequence number. A word with the expected number has arrived. So a poster needs no
/// fence between the words, and a worker reads the whole task with the loads that poll for it.
///
///   poster                                          worker of the target, in the order of the ring
///     waits until ticket < done + depth; its ticket = next++
///     a long payload -> its slot of the buffer
///     slot[ticket % depth]: header, arguments,
///     short payload, each word with ticket + 1  ->   checks it, runs the function
///     completion                                <- reply signal; done = tasks that have run, updated for several at
///                                               once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/core/layout.hpp"
#include "beeline/core/macros.hpp"

namespace beeline {

struct SignaledWord;

/// Largest size of a task's arguments, in bytes.
inline constexpr std::uint32_t max_task_arguments = 256;
/// Number of words of a slot, and of words before the arguments.
inline constexpr std::uint32_t task_words = 40, task_header_words = 4;
/// Position of a task's word in its slot. The words stand in reverse order: the signal of the first word, whose arrival
/// announces a task, is at the end of the slot, behind all other bytes of the task. So a put with a signal carries the
/// whole task to another node.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint32_t task_word_position(std::uint32_t word) {
  return task_words - 1 - word;
}
/// Alignment in bytes of the arguments, and of a payload that travels in the slot after them.
inline constexpr std::uint32_t task_alignment = 16;

/// The header at the start of a task's slot.
struct TaskHeader {
  std::uint32_t function;  ///< index of the function in the task list
  std::uint16_t argument_bytes;
  std::uint8_t words;  ///< used words of the slot, so that the worker need not compute them
  bool is_ordered;     ///< whether earlier writes of the poster are visible to the function
  std::uint64_t payload_bytes;
  std::uint64_t reply;  ///< offset, in the poster's slot, of the signal that is set when the task has run; 0: none
  std::uint64_t reply_value;  ///< value of that signal; 0: the function sets the signal
};
static_assert(std::is_trivially_copyable_v<TaskHeader> && sizeof(TaskHeader) == 8 * task_header_words);

/// Positions of the words in a slot, which depend on the size of the arguments.
struct TaskLayout {
  std::uint32_t argument_bytes;

  /// The first word of a payload in the slot.
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint32_t payload_word() const {
    return task_header_words + (argument_bytes + task_alignment - 1) / task_alignment * (task_alignment / 8);
  }
  /// Whether a payload of this size travels in the slot. Longer payloads go to the target's buffer.
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr bool holds(std::uint64_t payload_bytes) const {
    return payload_bytes <= 8 * (task_words - payload_word());
  }
  /// Words of the slot that are used.
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint32_t words(std::uint64_t payload_bytes) const {
    return payload_word() + (holds(payload_bytes) ? static_cast<std::uint32_t>((payload_bytes + 7) / 8) : 0);
  }
};
static_assert(TaskLayout{max_task_arguments}.payload_word() <= task_words);

/// The state that a rank's threads share to post to a ring, in the rank's memory.
struct TaskTickets {
  alignas(64) std::uint64_t next;  ///< next ticket: tasks posted or being written; written by the posting threads
  alignas(64) std::uint64_t done;  ///< tasks that the target has run; written by the target's worker
  std::uint64_t answer;   ///< if the member of this ring is on another node: the reply that a function of this rank has
                          ///< set for the member's task, which the worker then sends
  std::uint64_t waiting;  ///< GPU, in this rank's own ring of a queue: tasks of this queue that wait for a slot
};

/// A target's payload buffer for a function. Every member has a copy of the entries of all members.
struct TaskPlace {
  std::uint64_t payloads;       ///< offset of the buffer in the target's slot
  std::uint64_t payload_bytes;  ///< largest payload of one task; the buffer has room for one of each task in flight
};

/// The entry of a function at its target; other ranks do not have it. A single load reads all of it.
struct alignas(16) TaskTarget {
  std::uint64_t object;      ///< address of the function's object
  std::uint64_t completion;  ///< address of the count of tasks that have run (0: none), plus 1 if the function is
                             ///< registered

  static constexpr std::uint64_t registered_bit = 1;
};
static_assert(sizeof(TaskTarget) == 16);

/// The task that a worker runs, for errors.
struct RunningTask {
  alignas(64) std::uint64_t begun;  ///< number of tasks that the worker has begun
  std::uint64_t what;               ///< index of the function + 1, and the poster's rank in the upper half; 0: no task

  [[nodiscard]] static BEELINE_HOST_DEVICE constexpr std::uint64_t what_of(std::uint32_t function,
                                                                           std::uint32_t poster) {
    return std::uint64_t{poster} << 32 | (std::uint64_t{function} + 1);
  }
  [[nodiscard]] static constexpr std::uint32_t function_of(std::uint64_t what) {
    return static_cast<std::uint32_t>(what) - 1;
  }
  [[nodiscard]] static constexpr std::uint32_t poster_of(std::uint64_t what) {
    return static_cast<std::uint32_t>(what >> 32);
  }
};

/// Value of `TaskChannel::running` outside of tasks.
inline constexpr std::uint32_t outside_tasks = 0xffffffffu;

/// The channel of a `Tasks` object, which kernels take by value.
struct TaskChannel {
  SignaledWord* slots;    ///< [queues, members, depth, task_words] slots of this rank as target; symmetric
  SignaledWord* copies;   ///< [queues, members, depth, task_words] tasks for members on other nodes, until they have
                          ///< run, in host memory; nullptr: all members are on one node
  TaskTickets* tickets;   ///< [queues, members] tickets of this rank as poster, for its posts to each member; symmetric
  TaskPlace* places;      ///< [members, functions]
  std::uint64_t* asleep;  ///< [members] whether a member's workers have ended; symmetric, written by the workers
  std::uint64_t* wanted;  ///< set by a rank that posts to workers that have ended; symmetric, in host memory
  std::uint32_t queues, members, depth, functions;
  std::uint32_t running;  ///< queue of the task that uses this channel; `outside_tasks` outside of tasks

  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t ring(std::uint32_t queue, std::uint32_t member) const {
    return std::size_t{queue} * members + member;
  }
  /// Index of the slot of a ring's ticket among the slots of all rings; fits in 32 bits.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t slot_index(std::size_t ring, std::uint64_t ticket) const {
    return static_cast<std::uint32_t>(ring) * depth + (static_cast<std::uint32_t>(ticket) & (depth - 1));
  }
};
static_assert(std::is_trivially_copyable_v<TaskChannel>);

}  // namespace beeline
