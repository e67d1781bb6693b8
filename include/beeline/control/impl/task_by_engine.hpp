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
  const std::uint8_t width = verb == Verb::store ? sizeof(std::uint64_t) : 0;
  const Request request{Operation::task, verb, width, 0, 0, member};
  return command_engine(ctx, ctx.routes->queue(0), {request, ctx.world_rank(member), offset, rows}).status;
}
/// Stores a word at an offset in a member's slot.
BEELINE_COLD BEELINE_HOST_DEVICE inline Status store_for_task(const Context& ctx, std::uint32_t member,
                                                              std::uint64_t offset, std::uint64_t value) {
  return command_for_task(ctx, Verb::store, member, offset, {reinterpret_cast<const void*>(value), 0, 0, 0, 0});
}

/// Puts a task into its slot at the target: the value of the first word, then the other words with their signals, then
/// the signal of the first word. A worker that finds the first word finds all of them, and polls no word while the
/// engine copies bytes to it.
///   copy  the task's slot in this rank's memory; unchanged until the target has run the task
BEELINE_HOST_DEVICE inline Status send_slot(const Context& ctx, std::uint32_t target, const SignaledWord* slot,
                                            const SignaledWord* copy, std::uint32_t words, std::uint64_t sequence) {
  const std::uint64_t first = ctx.offset_in_slot(slot), others = first + sizeof(SignaledWord);
  const Status status = store_for_task(ctx, target, first, copy->value);
  if (status != Status::ok) return status;
  return command_for_task(
      ctx, Verb::put_signal, target, others,
      {copy + 1, 1, (words - 1) * sizeof(SignaledWord), first + offsetof(SignaledWord, signal), sequence});
}

}  // namespace beeline::detail
