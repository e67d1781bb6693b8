// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a command says of itself, by CPU threads and by threads of a GPU.

#include <cstdint>

#include "beeline/core/command.hpp"

namespace beeline {

[[nodiscard]] BEELINE_HOST_DEVICE inline bool has_signal(const Command& command) {
  return command.verb == Verb::put_signal || command.verb == Verb::put_inline_signal;
}

/// Of a command that has a signal: the put, and the signal behind it.
[[nodiscard]] BEELINE_HOST_DEVICE inline Command put_of(const Command& command) {
  Command put = command;
  put.verb = command.verb == Verb::put_signal ? Verb::put : Verb::put_inline;
  put.remote_stride = put.local_stride = 0;
  return put;
}
[[nodiscard]] BEELINE_HOST_DEVICE inline Command signal_of(const Command& command) {
  Command signal{};
  signal.sequence = command.sequence, signal.verb = Verb::store, signal.width = sizeof(std::uint64_t);
  signal.peer = command.peer, signal.remote = command.remote_stride, signal.local = command.local_stride;
  return signal;
}

/// Whether a command on one word names one: its width, and where it lies.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool is_word(const Command& command) {
  const std::uint64_t width = command.width;
  const bool is_scalar = width == 1 || width == 2 || width == 4 || width == 8;
  return is_scalar && (command.remote & (width - 1)) == 0 && (command.verb == Verb::store || width >= 4);
}

/// Whether [a, a + bytes) and [b, b + more) have bytes in common.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool overlap(std::uint64_t a, std::uint64_t bytes, std::uint64_t b,
                                                      std::uint64_t more) {
  return a < b ? b - a < bytes : a - b < more;
}

}  // namespace beeline
