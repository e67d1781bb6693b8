// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tasks for members that loads and stores do not reach: the engine carries a task to its target, and the
/// acknowledgement back. All of this is out of line, so that it takes no registers from tasks inside a node.

#include <cstdint>

#include "beeline/core/task.hpp"
#include "beeline/device/impl/route.hpp"
#include "beeline/device/signaled_word.hpp"

namespace beeline::detail {

/// Whether only the engine reaches a member.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool is_reached_by_engine(const Context& ctx, std::uint32_t member) {
  return ctx.has_routes != 0 && ctx.access_to(member).access == PeerAccess::engine;
}

/// Posts a command after all earlier commands of this rank's tasks to the member; all of them use queue 0. One thread
/// calls it.
///   offset  in the member's slot
///   rows    see CommandFields
BEELINE_HOST_DEVICE inline Status command_for_task(const Context& ctx, Verb verb, std::uint32_t member,
                                                   std::uint64_t offset, const LocalRows& rows) {
  const bool is_word = has_shape<VerbShape::word, VerbShape::payload>(verb);
  const std::uint8_t width = is_word ? sizeof(std::uint64_t) : 0;
  const Request request{Operation::task, verb, width, 0, 0, member};
  return command_engine(ctx, ctx.routes->queue(0), {request, ctx.world_rank(member), offset, rows}).status;
}
/// Stores a word at an offset in a member's slot.
BEELINE_COLD BEELINE_HOST_DEVICE inline Status store_for_task(const Context& ctx, std::uint32_t member,
                                                              std::uint64_t offset, std::uint64_t value) {
  return command_for_task(ctx, Verb::store, member, offset, {reinterpret_cast<const void*>(value), 0, 0, 0, 0});
}

/// Puts a task into its slot at the target: all its words but the signal of the first, then this signal. A worker that
/// finds the first word finds all of them.
///   slot  the task's slot at the target, as an address of this rank
///   copy  the task's slot in this rank's memory; unchanged until the target has run the task
BEELINE_HOST_DEVICE inline Status send_slot(const Context& ctx, std::uint32_t target, const SignaledWord* slot,
                                            const SignaledWord* copy, std::uint32_t words, std::uint64_t sequence) {
  const std::uint32_t begin = task_word_position(words - 1);
  const std::uint64_t signal = ctx.offset_in_slot(&slot[task_word_position(0)].signal);
  return command_for_task(ctx, Verb::put_signal, target, ctx.offset_in_slot(&slot[begin]),
                          {&copy[begin], 1, words * sizeof(SignaledWord) - sizeof sequence, signal, sequence});
}

/// A word at an offset in the poster's slot.
struct WordForPoster {
  std::uint64_t offset, value;
};
/// Sets a task's reply at its poster, then, in the same message, the poster's count of tasks that have run.
///   reply  of offset 0: the task has no reply
BEELINE_COLD BEELINE_HOST_DEVICE inline Status acknowledge_by_engine(const Context& ctx, std::uint32_t poster,
                                                                     WordForPoster reply, WordForPoster done) {
  if (reply.offset == 0) return store_for_task(ctx, poster, done.offset, done.value);
  return command_for_task(ctx, Verb::put_inline_signal, poster, reply.offset,
                          {reinterpret_cast<const void*>(reply.value), 0, 0, done.offset, done.value});
}

}  // namespace beeline::detail
