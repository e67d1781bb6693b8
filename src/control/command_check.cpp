// SPDX-License-Identifier: Apache-2.0
#include "control/command_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "control/copy_if_there.hpp"

namespace beeline {

namespace {

/// Bytes from the first byte of rows to the last; nothing if the rows have no bytes, or exceed the address space.
std::optional<std::uint64_t> extent(std::uint64_t rows, std::uint64_t row_bytes, std::uint64_t stride) {
  std::uint64_t before_last = 0, bytes = 0;
  if (rows == 0 || row_bytes == 0 || __builtin_mul_overflow(rows - 1, stride, &before_last) ||
      __builtin_add_overflow(before_last, row_bytes, &bytes))
    return std::nullopt;
  return bytes;
}

/// The width of the word that a command with a signal sets.
constexpr std::size_t signal_bytes = sizeof(std::uint64_t);

/// The bytes that the fields of a command name, without its signal.
struct NamedBytes {
  const char* refused = nullptr;  ///< why the fields make no sense; nullptr: they do
  std::uint64_t bytes = 0;        ///< moved or changed by the command
  std::uint64_t span = 0;         ///< from the first byte to the last, at the peer
  std::uint64_t span_here = 0;    ///< as `span`, in the poster's memory; 0: the command names none
};

NamedBytes rows_named_by(const Command& command, bool has_strides) {
  const auto there = extent(command.rows, command.row_bytes, has_strides ? command.remote_stride : 0);
  const auto here = extent(command.rows, command.row_bytes, has_strides ? command.local_stride : 0);
  std::uint64_t bytes = 0;
  if (!there || !here || *here > ~command.local || *there > ~command.remote ||
      __builtin_mul_overflow(command.rows, command.row_bytes, &bytes))
    return {"rows of no bytes, or beyond the end of the address space"};
  return {nullptr, bytes, *there, *here};
}

constexpr const char* no_word = "the word's width does not fit the operation, or the word is not aligned";

NamedBytes bytes_named_by(const Command& command, const VerbInfo& verb) {
  const NamedBytes width{nullptr, command.width, command.width};
  switch (verb.shape) {
    case VerbShape::payload:
      if (verb.has_signal && command.width > max_inline_bytes_with_signal)
        return {"no command with a signal holds so many bytes"};
      return command.width != 0 && command.width <= max_inline_bytes ? width
                                                                     : NamedBytes{"no command holds so many bytes"};
    case VerbShape::word:
    case VerbShape::atomic:
      return is_word(command) ? width : NamedBytes{no_word};
    case VerbShape::count:
      return {refuse_trigger(command.remote, command.local, 0)};
    case VerbShape::entries:
      if (command.rows == 0 || command.rows > most_batch_entries || command.row_bytes != sizeof(BatchEntry))
        return {"no batch has so many entries, or entries of such a size"};
      return {nullptr, command.rows * command.row_bytes};
    default:
      return rows_named_by(command, !verb.has_signal);
  }
}

/// Why an offset and a length are not within a peer's memory; nullptr if they are.
const char* refuse_place(const EngineClient& client, std::uint32_t peer, std::uint64_t offset, std::uint64_t span) {
  if (peer >= static_cast<std::uint32_t>(client.ranks)) return "there is no such rank";
  const std::uint64_t slot = SlotLayout{client.context.slot_shift}.slot_bytes();
  return offset >= slot || span > slot - offset ? "the place is not in its peer's memory" : nullptr;
}

/// As above, for the word that a command with a signal sets.
const char* refuse_signal(const EngineClient& client, const Command& command) {
  if (command.remote_stride % signal_bytes != 0) return no_word;
  return refuse_place(client, command.peer, command.remote_stride, signal_bytes);
}

NamedBytes named_by(const EngineClient& client, const Command& command) {
  const VerbInfo* const verb = find_verb(command.verb);
  if (verb == nullptr) return {"there is no such verb"};
  NamedBytes named = bytes_named_by(command, *verb);
  if (named.refused != nullptr || verb->shape == VerbShape::between) return named;
  named.refused = refuse_place(client, command.peer, command.remote, named.span);
  if (named.refused == nullptr && verb->has_signal) named.refused = refuse_signal(client, command);
  return named;
}

/// Engines call this for each command and each entry: a signal is checked in place, without a command made for it.
///   address_of  the address of an offset in the peer's slot
template <class AddressOf>
CommandTarget target_by(const EngineClient& client, MappedMemory& memory, const Command& command,
                        AddressOf address_of) {
  const auto not_there = [&](const std::byte* address) {
    const bool is_on_gpu =
        !client.device.is_gpu() && !client.is_host_memory(address) && !client.piece_at(address).empty();
    return is_on_gpu ? "it is memory of a GPU, which threads of a host rank do not access"
                     : "no memory of its peer is there (any more)";
  };
  const auto [refused, bytes, span, span_here] = named_by(client, command);
  if (refused != nullptr) return {refused};
  if (has_shape<VerbShape::entries>(command.verb)) return {nullptr, nullptr, bytes};
  const bool has_peer = !has_shape<VerbShape::between>(command.verb);
  std::byte* const address = has_peer ? address_of(command.remote) : reinterpret_cast<std::byte*>(command.remote);
  if (has_peer && !memory.holds(address, span)) return {not_there(address)};
  if (span_here > 0 && overlap(reinterpret_cast<std::uintptr_t>(address), span, command.local, span_here))
    return {"its two places overlap"};
  if (!has_signal(command)) return {nullptr, address, bytes};
  std::byte* const signal = address_of(command.remote_stride);
  if (!memory.holds(signal, signal_bytes)) return {not_there(signal)};
  return {nullptr, address, bytes, signal};
}

}  // namespace

CommandTarget target_of(const EngineClient& client, MappedMemory& memory, const Command& command) {
  return target_by(client, memory, command,
                   [&](std::uint64_t offset) { return client.address_of(command.peer, offset); });
}

bool is_for_other_node(const EngineClient& client, const Command& command) {
  const bool names_peer = !has_shape<VerbShape::between, VerbShape::count>(command.verb);
  return client.network != nullptr && names_peer && command.peer < static_cast<std::uint32_t>(client.ranks) &&
         client.is_remote(command.peer);
}

CommandTarget checked_for_far(const EngineClient& client, const Command& command) {
  if (command.answers) return {"a queue gives no answers"};
  const NamedBytes named = named_by(client, command);
  return {named.refused, nullptr, named.bytes + (has_signal(command) ? signal_bytes : 0)};
}

BatchEntries::BatchEntries(const Command& batch, std::uint64_t first, MappedMemory& memory)
    : count_(std::min<std::uint64_t>(batch.rows - first, most_batch_entries)) {
  const auto* const from = reinterpret_cast<const std::byte*>(batch.local + first * sizeof(BatchEntry));
  const std::size_t bytes = count_ * sizeof(BatchEntry);
  auto* const to = reinterpret_cast<std::byte*>(entries_.data());
  is_there_ = memory.holds_in_host_memory(from, bytes);
  if (is_there_)
    std::memcpy(to, from, bytes);
  else
    is_there_ = detail::copy_if_there(to, from, bytes);
}

const char* refuse_in_batch(const Command& entry) {
  if (!is_for_batch(entry.verb)) return "a batch has no such operations";
  const bool is_long = has_shape<VerbShape::to_peer>(entry.verb) ? entry.row_bytes > most_batched_bytes
                                                                 : entry.width > max_inline_bytes_in_batch;
  return is_long ? "no entry of a batch has so many bytes" : nullptr;
}

const char* refuse_entry(std::size_t index, const Command& entry, const char* reason) {
  static thread_local std::string text;
  text = fmt::format("entry {} ({}): {}", index, text_of(entry), reason);
  return text.c_str();
}

namespace {

/// The target of an entry that holds its bytes, as most do; nullptr: the check of commands says whether it is refused.
///   peer  the start of the peer's slot
std::byte* target_of_payload(MappedMemory& memory, const BatchEntry& entry, std::byte* peer, std::uint64_t slot_bytes) {
  const std::uint64_t offset = entry.remote();
  const std::size_t bytes = entry.width();
  const bool is_good = entry.verb() == Verb::put_inline && bytes - 1 < max_inline_bytes_in_batch &&
                       offset < slot_bytes && bytes <= slot_bytes - offset && memory.holds(peer + offset, bytes);
  return is_good ? peer + offset : nullptr;
}

/// Checks all entries before the first is carried out.
BegunCommand begin_batch(const EngineClient& client, MappedMemory& memory, CommandWorker& worker, const Command& batch,
                         std::size_t slot) {
  const BatchEntries entries(batch, 0, memory);
  if (!entries.is_there()) return {"memory of its poster is not there"};
  std::byte* const peer = client.address_of(batch.peer, 0);
  const std::uint64_t slot_bytes = SlotLayout{client.context.slot_shift}.slot_bytes();
  std::array<std::byte*, most_batch_entries> targets;
  std::size_t bytes = 0, index = 0;
  for (const BatchEntry& entry : entries.all()) {
    if (std::byte* const target = target_of_payload(memory, entry, peer, slot_bytes); target != nullptr) {
      targets[index++] = target, bytes += entry.width();
      continue;
    }
    const Command command = command_of(batch, entry);
    CommandTarget target{refuse_in_batch(command)};
    if (target.refused == nullptr)
      target = target_by(client, memory, command, [peer](std::uint64_t offset) { return peer + offset; });
    if (target.refused != nullptr) return {refuse_entry(index, command, target.refused)};
    targets[index++] = target.address;
    bytes += target.bytes;
  }
  index = 0;
  const char* const refused = worker.begin_all(batch, entries.all(), targets.data(), slot, index);
  return {refused == nullptr ? nullptr : refuse_entry(index, command_of(batch, entries.all()[index]), refused), bytes};
}

}  // namespace

BegunCommand begin_command(const EngineClient& client, MappedMemory& memory, CommandWorker& worker,
                           const Command& command, std::size_t slot) {
  const CommandTarget target = target_of(client, memory, command);
  if (target.refused != nullptr) return {target.refused};
  if (has_shape<VerbShape::entries>(command.verb)) return begin_batch(client, memory, worker, command, slot);
  if (const char* const reason = worker.begin(command, target.address, slot)) return {reason};
  if (target.signal == nullptr) return {nullptr, target.bytes};
  return {worker.begin(signal_of(command), target.signal, slot), target.bytes + signal_bytes};
}

const char* refuse_trigger(std::uint64_t tag, std::uint64_t count, std::uint32_t tags) {
  if (tags == 0) return "its queue takes no triggers";
  if (tag >= tags) return "there is no such tag";
  return count == 0 ? "it counts nothing" : nullptr;
}

std::string refusal_of(int rank, const Command& command, const char* reason) {
  const std::string what =
      command.sequence == 0 ? "a triggered operation" : fmt::format("command {}", command.sequence);
  return fmt::format("rank {}'s engine refused {} of a queue ({}): {}", rank, what, text_of(command), reason);
}

std::string text_of(const Command& command) {
  const VerbInfo* const verb = find_verb(command.verb);
  const std::string name = verb != nullptr ? verb->name : fmt::format("verb {}", static_cast<int>(command.verb));
  const std::string place = fmt::format("rank {}, offset {:#x} of its slot", command.peer, command.remote);
  switch (verb != nullptr ? verb->shape : VerbShape::word) {
    case VerbShape::count:
      return fmt::format("{} of tag {} by {}", name, command.remote, command.local);
    case VerbShape::entries:
      return fmt::format("{} of {} entries, rank {}", name, command.rows, command.peer);
    case VerbShape::between:
      return fmt::format("{} of {} bytes from {:#x} to {:#x}", name, command.row_bytes, command.local, command.remote);
    case VerbShape::to_peer:
    case VerbShape::from_peer:
      return fmt::format("{} of {} x {} bytes, {}, here {:#x}", name, command.rows, command.row_bytes, place,
                         command.local);
    default:
      return fmt::format("{} of {} bytes, {}", name, command.width, place);
  }
}

}  // namespace beeline
