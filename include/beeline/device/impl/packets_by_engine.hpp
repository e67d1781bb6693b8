// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Messages of packet ports to and from a peer that only the engine reaches. The engine puts a message's bytes into the
/// slot as they are, then sets the slot's signal to the message's sequence. All of it is out of line, with arguments by
/// value, so that it takes no registers of ports by loads and stores.

#include <cstddef>
#include <cstdint>

#include "beeline/device/impl/route.hpp"
#include "beeline/device/put_get.hpp"

namespace beeline::detail {

/// A channel's memory in a team with members on other nodes. Its parts are at the same offsets on all members: states,
/// rings, then signals and copies.
template <class State>
struct RemotePackets {
  State* states;  ///< [ranks]
  std::uint32_t ranks, depth;
  std::uint32_t slot_memory;  ///< bytes of a slot in memory

  /// [depth] slots at the receiver, of messages from `from`.
  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* ring(std::uint32_t from) const {
    return reinterpret_cast<std::byte*>(states + ranks) + std::size_t{from} * depth * slot_memory;
  }
  /// [depth] at the receiver: sequence of the last message from `from` in each slot.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t* signals(std::uint32_t from) const {
    return reinterpret_cast<std::uint64_t*>(ring(ranks)) + std::size_t{from} * depth;
  }
  /// [depth] slots at the sender: messages to `to`, from which the engine reads.
  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* copies(std::uint32_t to) const {
    return reinterpret_cast<std::byte*>(signals(ranks)) + std::size_t{to} * depth * slot_memory;
  }
};

/// Posts a command on queue 0, which keeps the messages to a peer in order. One thread calls it.
BEELINE_HOST_DEVICE inline Status command_for_packets(const Context& ctx, const Request& request, const void* remote,
                                                      const LocalRows& rows) {
  return command_engine(ctx, ctx.routes->queue(0), fields_of(ctx, request, remote, rows)).status;
}

/// Sends message `awaited.sequence` once its slot is free. Every thread of the group calls it.
///   awaited  the wait for the slot: peer, sequence, and the message that the peer must have received before
template <class Group, class State>
BEELINE_COLD BEELINE_HOST_DEVICE Status send_by_engine(Group group, const Context& ctx, RemotePackets<State> memory,
                                                       Awaited awaited, const std::byte* source, std::uint32_t bytes,
                                                       Timeout timeout) {
  const std::uint32_t peer = awaited.peer;
  const auto sequence = static_cast<std::uint32_t>(awaited.sequence);
  Status status = await_consumed(group, ctx, awaited, timeout, &memory.states[peer].consumed);
  if (status != Status::ok) return status;
  const std::uint32_t slot = sequence & (memory.depth - 1);
  std::byte* const copy = memory.copies(peer) + std::size_t{slot} * memory.slot_memory;
  copy_bytes(OutOfLine<Group>{group}, copy, source, bytes);
  group.sync();
  if (group.thread_rank() == 0) {
    const std::uint64_t* const signal = memory.signals(ctx.rank) + slot;
    if (bytes == 0)
      status = command_for_packets(ctx, {Operation::packet_send, Verb::store, sizeof *signal, 0, 0, peer}, signal,
                                   {reinterpret_cast<const void*>(std::uintptr_t{sequence}), 0, 0, 0, 0});
    else
      status = command_for_packets(ctx, {Operation::packet_send, Verb::put_signal, 0, 0, 0, peer},
                                   memory.ring(ctx.rank) + std::size_t{slot} * memory.slot_memory,
                                   {copy, 1, bytes, ctx.offset_in_slot(signal), sequence});
  }
  return agree(group, status);
}

/// Receives message `awaited.sequence`, and returns the credits that are due. Every thread of the group calls it.
template <class Group, class State>
BEELINE_COLD BEELINE_HOST_DEVICE Status receive_by_engine(Group group, const Context& ctx, RemotePackets<State> memory,
                                                          Awaited awaited, std::byte* destination, std::uint32_t bytes,
                                                          Timeout timeout) {
  const std::uint32_t peer = awaited.peer;
  const auto sequence = static_cast<std::uint32_t>(awaited.sequence);
  const std::uint32_t slot = sequence & (memory.depth - 1);
  Status status = Status::ok;
  if (group.thread_rank() == 0)
    status = await_word(ctx, awaited, timeout, SystemAtomic<std::uint64_t>(memory.signals(peer)[slot]), Order::memory,
                        [sequence](std::uint64_t observed) { return observed == sequence; });
  status = agree(group, status);
  if (status != Status::ok) return status;
  copy_bytes(OutOfLine<Group>{group}, destination, memory.ring(peer) + std::size_t{slot} * memory.slot_memory, bytes);
  group.sync();
  if ((sequence & (memory.depth / 2 - 1)) != 0) return Status::ok;
  const std::uint32_t* const consumed = &memory.states[ctx.rank].consumed;
  if (group.thread_rank() == 0)
    status = command_for_packets(ctx, {Operation::packet_receive, Verb::store, sizeof *consumed, 0, 0, peer}, consumed,
                                 {reinterpret_cast<const void*>(std::uintptr_t{sequence}), 0, 0, 0, 0});
  return agree(group, status);
}

}  // namespace beeline::detail
