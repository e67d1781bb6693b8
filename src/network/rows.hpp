// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Rows of bytes in memory, and one behind the other in a message.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "beeline/core/command.hpp"

namespace beeline {

/// Rows in memory.
struct Rows {
  std::byte* first;
  std::uint64_t rows, row_bytes, stride;

  [[nodiscard]] std::size_t bytes() const { return rows * row_bytes; }
  [[nodiscard]] bool is_whole() const { return rows == 1 || stride == row_bytes; }
  void pack(std::byte* to) const {
    for (std::uint64_t row = 0; row < rows; ++row) std::memcpy(to + row * row_bytes, first + row * stride, row_bytes);
  }
  void unpack(const std::byte* from) const {
    for (std::uint64_t row = 0; row < rows; ++row) std::memcpy(first + row * stride, from + row * row_bytes, row_bytes);
  }
};

/// Rows that lie apart are packed into messages of so many bytes at most: neither end needs a larger buffer.
inline constexpr std::uint64_t most_packed_bytes = std::uint64_t{64} << 10;

/// Rows of a command that travel in one message: one, however long, or as many as fit.
[[nodiscard]] inline std::uint64_t rows_of_message(const Command& command) {
  if (command.row_bytes == command.remote_stride && command.row_bytes == command.local_stride) return command.rows;
  return std::clamp<std::uint64_t>(most_packed_bytes / command.row_bytes, 1, command.rows);
}
[[nodiscard]] inline std::uint64_t messages_of(const Command& command) {
  const std::uint64_t rows = rows_of_message(command);
  return (command.rows + rows - 1) / rows;
}

/// What of a command's rows goes in a message.
[[nodiscard]] inline Command piece_of(const Command& command, std::uint64_t piece) {
  const std::uint64_t rows = rows_of_message(command);
  Command part = command;
  part.rows = std::min(rows, command.rows - piece * rows);
  part.remote += piece * rows * command.remote_stride;
  part.local += piece * rows * command.local_stride;
  return part;
}

[[nodiscard]] inline Rows local_rows(const Command& command) {
  return {reinterpret_cast<std::byte*>(command.local), command.rows, command.row_bytes, command.local_stride};
}

}  // namespace beeline
