// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Small puts whose bytes travel in the command, and puts that have a signal in the same command.

#include <cstdint>

#include "beeline/device/impl/route.hpp"

namespace beeline::detail {

/// Up to 8 bytes from `from` as a word, the first byte lowest.
BEELINE_HOST_DEVICE inline std::uint64_t load_bytes(const std::byte* from, std::size_t bytes) {
  if (bytes == 8 && reinterpret_cast<std::uintptr_t>(from) % 8 == 0) return machine::load_as<std::uint64_t>(from);
  std::uint64_t word = 0;
  BEELINE_NO_UNROLL
  for (std::size_t i = 0; i < bytes; ++i) word |= static_cast<std::uint64_t>(from[i]) << 8 * i;
  return word;
}

/// Word `index` of `bytes` bytes; 0 after their end.
BEELINE_HOST_DEVICE inline std::uint64_t word_of_payload(const std::byte* from, std::size_t bytes, std::size_t index) {
  const std::size_t first = 8 * index;
  return first >= bytes ? 0 : load_bytes(from + first, bytes - first < 8 ? bytes - first : 8);
}

/// A command that holds `bytes` bytes, at most `max_inline_bytes`; reads the source now.
BEELINE_HOST_DEVICE inline CommandFields inline_put(const Context& ctx, const void* destination, const void* source,
                                                    std::size_t bytes, std::uint32_t peer) {
  const auto word = [&](std::size_t index) {
    return word_of_payload(static_cast<const std::byte*>(source), bytes, index);
  };
  const Request request{Operation::put, Verb::put_inline, static_cast<std::uint8_t>(bytes), 0, 0, peer};
  return fields_of(ctx, request, destination,
                   {reinterpret_cast<const void*>(word(0)), word(1), word(2), word(3), word(4)});
}

/// As `inline_put`, followed by a signal; `bytes` is at most `max_inline_bytes_with_signal`.
BEELINE_HOST_DEVICE inline CommandFields inline_put_signal(const Context& ctx, const void* destination,
                                                           const void* source, std::size_t bytes, std::uint32_t peer,
                                                           std::uint64_t signal_offset, std::uint64_t value) {
  const auto word = [&](std::size_t index) {
    return word_of_payload(static_cast<const std::byte*>(source), bytes, index);
  };
  const Request request{Operation::put, Verb::put_inline_signal, static_cast<std::uint8_t>(bytes), 0, 0, peer};
  return fields_of(ctx, request, destination,
                   {reinterpret_cast<const void*>(word(0)), word(1), word(2), signal_offset, value});
}

/// A put of bytes, and the signal that is set after it.
struct SignaledBytes {
  void* destination;
  const void* source;
  std::size_t bytes;
  std::uint64_t* signal;
  std::uint64_t value;
  std::uint32_t peer;
  SourceKind kind = SourceKind::unknown;
};

/// The command of a put with a signal; the engine reads the source later.
BEELINE_HOST_DEVICE inline CommandFields put_signal_fields(const Context& ctx, const SignaledBytes& put) {
  const Request request{Operation::put, Verb::put_signal, 0, put.kind == SourceKind::readable, 0, put.peer};
  return fields_of(ctx, request, put.destination,
                   {put.source, 1, put.bytes, ctx.offset_in_slot(put.signal), put.value});
}

/// Posts the put and its signal to an engine. In a GPU's kernel the engine reads small sources, too, which saves
/// registers. Every thread calls it.
template <class Group>
BEELINE_HOST_DEVICE Status put_signal_by_engine(const Group& group, const Context& ctx, QueueId queue,
                                                const SignaledBytes& put) {
  const auto fields = [&] {
    if constexpr (executor == DeviceKind::host)
      if (put.bytes <= max_inline_bytes_with_signal)
        return inline_put_signal(ctx, put.destination, put.source, put.bytes, put.peer, ctx.offset_in_slot(put.signal),
                                 put.value);
    return put_signal_fields(ctx, put);
  };
  group.sync();
  Status status = Status::ok;
  if (group.thread_rank() == 0) status = command_engine(ctx, ctx.routes->queue(queue.index), fields()).status;
  return agree_on_engine(group, status);
}

}  // namespace beeline::detail
