// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The payload of a message that carries a batch: its entries, then the data of each entry that puts rows, at multiples
/// of 8 bytes.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "control/command_check.hpp"
#include "transports/rows.hpp"

namespace beeline {

/// Bytes in the payload for the data of an entry.
[[nodiscard]] inline std::size_t packed_bytes_of(const Command& entry) {
  return puts_rows(entry) ? (entry.row_bytes + 7) / 8 * 8 : 0;
}

/// Most entries of a message to a rank whose device carries them out. Entries with rows, for which the device has few
/// buffers, travel by themselves.
inline constexpr std::size_t most_staged_entries = 32;

/// The first entries of a batch, as many as fit a message.
struct BatchPart {
  const char* refused = nullptr;  ///< why an entry is refused; nullptr: none is
  std::size_t entries = 0, bytes = 0;
};
///   first      index of the first entry in its batch
///   is_staged  whether a device carries the entries out; the part is empty if the first has rows
[[nodiscard]] inline BatchPart part_of(const Command& batch, std::span<const BatchEntry> entries, std::size_t first,
                                       bool is_staged) {
  BatchPart part;
  for (const BatchEntry& entry : entries) {
    const Command command = command_of(batch, entry);
    if (const char* const refused = refuse_in_batch(command))
      return {refuse_entry(first + part.entries, command, refused)};
    if (is_staged && (puts_rows(command) || part.entries == most_staged_entries)) break;
    const std::size_t bytes = part.bytes + sizeof entry + packed_bytes_of(command);
    if (bytes > most_packed_bytes) break;
    ++part.entries, part.bytes = bytes;
  }
  return part;
}

/// Writes the payload. Returns nullptr, or why an entry is refused.
///   first  index of the first entry in its batch
///   copy   copies bytes of the poster's memory; returns false if they are not there
template <class Copy>
[[nodiscard]] const char* pack(const Command& batch, std::span<const BatchEntry> entries, std::size_t first,
                               std::byte* payload, Copy copy) {
  std::memcpy(payload, entries.data(), entries.size_bytes());
  std::byte* data = payload + entries.size_bytes();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Command command = command_of(batch, entries[i]);
    if (!puts_rows(command)) continue;
    if (!copy(data, reinterpret_cast<const std::byte*>(command.local), command.row_bytes))
      return refuse_entry(first + i, command, "memory of its poster is not there");
    data += packed_bytes_of(command);
  }
  return nullptr;
}

/// Calls `visit(index, command, data)` for each entry of a payload, until it returns false. Returns whether all calls
/// returned true and the payload is as long as its entries say.
///   command  an entry that puts rows has no local address: its rows are at `data`
template <class Visit>
[[nodiscard]] bool for_entries(const Command& batch, std::span<const std::byte> payload, Visit visit) {
  const std::size_t before_data = batch.rows * sizeof(BatchEntry);
  if (batch.rows > most_batch_entries || before_data > payload.size()) return false;
  std::span<const std::byte> data = payload.subspan(before_data);
  for (std::size_t i = 0; i < batch.rows; ++i) {
    BatchEntry entry;
    std::memcpy(&entry, payload.data() + i * sizeof entry, sizeof entry);
    Command command = command_of(batch, entry);
    if (puts_rows(command)) command.local = 0;
    const std::size_t bytes = command.row_bytes > most_batched_bytes ? data.size() + 1 : packed_bytes_of(command);
    if (bytes > data.size() || !visit(i, command, data.data())) return false;
    data = data.subspan(bytes);
  }
  return data.empty();
}

}  // namespace beeline
