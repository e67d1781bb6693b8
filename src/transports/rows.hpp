// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Rows of bytes in memory, and packed one after the other in a message.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "beeline/core/command.hpp"
#include "beeline/device/impl/verbs.hpp"
#include "control/copy_if_there.hpp"

namespace beeline {

/// Whether a command's data are rows in its poster's memory.
[[nodiscard]] inline bool puts_rows(const Command& command) { return has_shape<VerbShape::to_peer>(command.verb); }
/// Whether a command is answered with rows of the target's memory.
[[nodiscard]] inline bool gets_rows(const Command& command) { return has_shape<VerbShape::from_peer>(command.verb); }
[[nodiscard]] inline bool moves_rows(const Command& command) { return puts_rows(command) || gets_rows(command); }
/// Whether a command names a list of operations.
[[nodiscard]] inline bool is_batch(const Command& command) { return has_shape<VerbShape::entries>(command.verb); }
/// The command without its signal, if it has one.
[[nodiscard]] inline Command without_signal(const Command& command) {
  return has_signal(command) ? put_of(command) : command;
}

/// Rows in memory.
struct Rows {
  std::byte* first;
  std::uint64_t rows, row_bytes, stride;

  [[nodiscard]] std::size_t bytes() const { return rows * row_bytes; }
  /// Bytes from the first byte to the last, gaps included.
  [[nodiscard]] std::size_t extent() const { return (rows - 1) * stride + row_bytes; }
  [[nodiscard]] bool is_whole() const { return rows == 1 || stride == row_bytes; }
  void pack(std::byte* to) const {
    for (std::uint64_t row = 0; row < rows; ++row) std::memcpy(to + row * row_bytes, first + row * stride, row_bytes);
  }
  void unpack(const std::byte* from) const {
    for (std::uint64_t row = 0; row < rows; ++row) std::memcpy(first + row * stride, from + row * row_bytes, row_bytes);
  }
  // As above, for memory that may not be mapped: returns false then.
  [[nodiscard]] bool pack_if_there(std::byte* to) const {
    return for_rows(
        [&](std::byte* row, std::size_t before) { return detail::copy_if_there(to + before, row, row_bytes); });
  }
  [[nodiscard]] bool unpack_if_there(const std::byte* from) const {
    return for_rows(
        [&](std::byte* row, std::size_t before) { return detail::copy_if_there(row, from + before, row_bytes); });
  }

 private:
  template <class Copy>
  [[nodiscard]] bool for_rows(Copy copy) const {
    for (std::uint64_t row = 0; row < rows; ++row)
      if (!copy(first + row * stride, row * row_bytes)) return false;
    return true;
  }
};

/// Rows that are not contiguous are packed into messages of at most this many bytes: neither end needs a larger buffer.
inline constexpr std::uint64_t most_packed_bytes = std::uint64_t{64} << 10;

/// How a command's rows are divided into messages. Rows that are contiguous at both ends count as one row. A message
/// has several rows, or part of one.
struct Cut {
  std::uint64_t rows, row_bytes;      ///< of the command, after contiguous rows are joined
  std::uint64_t message_rows, parts;  ///< rows in a message; messages for a row
  std::uint64_t part_bytes;           ///< bytes of a row in one message
  std::uint64_t remote_stride, local_stride;

  /// Whether one message carries all of the command. Asked first, since the rest divides several times.
  [[nodiscard]] bool is_one_message() const { return rows == 1 && parts == 1; }
  [[nodiscard]] std::uint64_t messages() const {
    if (is_one_message()) return 1;
    return parts > 1 ? rows * parts : (rows + message_rows - 1) / message_rows;
  }
};

///   most_bytes  largest part of a row in one message
[[nodiscard]] inline Cut cut_of(const Command& command, std::uint64_t most_bytes) {
  Cut cut{command.rows, command.row_bytes, 1, 1, command.row_bytes, command.remote_stride, command.local_stride};
  if (cut.row_bytes == cut.remote_stride && cut.row_bytes == cut.local_stride) cut.row_bytes *= cut.rows, cut.rows = 1;
  cut.part_bytes = std::min(cut.row_bytes, most_bytes);
  if (cut.rows == 1 && cut.part_bytes == cut.row_bytes) return cut;
  if (cut.rows > 1) cut.message_rows = std::clamp<std::uint64_t>(most_packed_bytes / cut.row_bytes, 1, cut.rows);
  cut.parts =
      std::max<std::uint64_t>(1, (cut.row_bytes + cut.part_bytes - 1) / std::max<std::uint64_t>(1, cut.part_bytes));
  return cut;
}

/// The part of a command that message `piece` carries.
[[nodiscard]] inline Command piece_of(const Command& command, const Cut& cut, std::uint64_t piece) {
  if (cut.is_one_message()) {
    Command all = command;
    all.rows = 1, all.row_bytes = cut.row_bytes;
    return all;
  }
  const std::uint64_t row = cut.parts > 1 ? piece / cut.parts : piece * cut.message_rows;
  const std::uint64_t before = piece % cut.parts * cut.part_bytes;  // bytes of the row before this part
  Command part = command;
  part.rows = std::min(cut.message_rows, cut.rows - row);
  part.row_bytes = std::min(cut.part_bytes, cut.row_bytes - before);
  part.remote += row * cut.remote_stride + before;
  part.local += row * cut.local_stride + before;
  return part;
}

/// A piece of a command in the form that a message carries: with the signal, if this is the last piece of a command
/// that has one.
[[nodiscard]] inline Command message_of(Command piece, const Command& whole, bool is_last) {
  piece.local = 0, piece.local_stride = piece.row_bytes;
  if (!has_signal(whole) || !is_last) return piece;
  piece.verb = whole.verb, piece.remote_stride = whole.remote_stride, piece.local_stride = whole.local_stride;
  return piece;
}

[[nodiscard]] inline Rows local_rows(const Command& command) {
  return {reinterpret_cast<std::byte*>(command.local), command.rows, command.row_bytes, command.local_stride};
}

}  // namespace beeline
