// SPDX-License-Identifier: Apache-2.0
#include "control/command_check.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>

#include "control/command_shape.hpp"

namespace beeline {

namespace {

constexpr std::array<const char*, command_verbs> verb_names = {
    "put",     "get",      "store",        "add",        "bit_and", "bit_or",  "bit_xor",    "minimum",
    "maximum", "exchange", "compare_swap", "put_inline", "copy",    "trigger", "put_signal", "put_inline_signal"};

constexpr const char* too_long = "no command with a signal holds so many bytes";

/// From the first byte of rows to the last; none beyond the address space, and of no bytes.
std::optional<std::uint64_t> extent(std::uint64_t rows, std::uint64_t row_bytes, std::uint64_t stride) {
  std::uint64_t before_last = 0, bytes = 0;
  if (rows == 0 || row_bytes == 0 || __builtin_mul_overflow(rows - 1, stride, &before_last) ||
      __builtin_add_overflow(before_last, row_bytes, &bytes))
    return std::nullopt;
  return bytes;
}

bool moves_rows(Verb verb) { return verb == Verb::put || verb == Verb::get || verb == Verb::copy; }

/// What a command says of the places that it names.
struct NamedBytes {
  const char* refused = nullptr;  ///< why it makes no sense
  std::uint64_t bytes = 0;        ///< that it moves or changes
  std::uint64_t span = 0;         ///< from the first byte to the last, at the peer
  std::uint64_t span_here = 0;    ///< the same in the poster's memory; 0: it names none
};

NamedBytes named_by(const EngineClient& client, const Command& command) {
  if (static_cast<std::uint8_t>(command.verb) >= command_verbs) return {"there is no such verb"};
  std::uint64_t bytes = command.width, span = command.width, span_here = 0;
  if (moves_rows(command.verb)) {
    const auto there = extent(command.rows, command.row_bytes, command.remote_stride);
    const auto here = extent(command.rows, command.row_bytes, command.local_stride);
    if (!there || !here || *here > ~command.local || *there > ~command.remote ||
        __builtin_mul_overflow(command.rows, command.row_bytes, &bytes))
      return {"rows of no bytes, or beyond the end of the address space"};
    span = *there, span_here = *here;
  } else if (command.verb == Verb::put_inline) {
    if (bytes == 0 || bytes > max_inline_bytes) return {"no command holds so many bytes"};
  } else if (!is_word(command)) {
    return {"the word's width does not fit the operation, or the word is not aligned"};
  }
  const NamedBytes named{nullptr, bytes, span, span_here};
  if (command.verb == Verb::copy) return named;
  if (command.peer >= static_cast<std::uint32_t>(client.ranks)) return {"there is no such rank"};
  const std::uint64_t slot = SlotLayout{client.context.slot_shift}.slot_bytes();
  if (command.remote >= slot || span > slot - command.remote) return {"the place is not in its peer's memory"};
  return named;
}

}  // namespace

CommandTarget target_of(const EngineClient& client, MappedMemory& memory, const Command& command) {
  const auto [refused, bytes, span, span_here] = named_by(client, command);
  if (refused != nullptr) return {refused};
  constexpr const char* overlapping = "its two places overlap";
  if (command.verb == Verb::copy) {
    if (overlap(command.remote, span, command.local, span_here)) return {overlapping};
    return {nullptr, reinterpret_cast<std::byte*>(command.remote), bytes};
  }
  std::byte* const address = client.address_of(command.peer, command.remote);
  if (!memory.holds(address, span)) return {"no memory of its peer is there (any more)"};
  if (span_here > 0 && overlap(reinterpret_cast<std::uintptr_t>(address), span, command.local, span_here))
    return {overlapping};
  return {nullptr, address, bytes};
}

CommandTarget checked_for_far(const EngineClient& client, const Command& command) {
  if (command.answers) return {"a queue gives no answers"};
  if (!has_signal(command)) {
    const NamedBytes named = named_by(client, command);
    return {named.refused, nullptr, named.bytes};
  }
  if (command.verb == Verb::put_inline_signal && command.width > max_inline_bytes_with_signal) return {too_long};
  const NamedBytes put = named_by(client, put_of(command)), signal = named_by(client, signal_of(command));
  return {put.refused != nullptr ? put.refused : signal.refused, nullptr, put.bytes + signal.bytes};
}

BegunCommand begin_command(const EngineClient& client, MappedMemory& memory, CommandWorker& worker,
                           const Command& command, std::size_t slot) {
  const bool signals = has_signal(command);
  const Command put = signals ? put_of(command) : command;
  const CommandTarget target = target_of(client, memory, put);
  if (target.refused != nullptr) return {target.refused};
  if (!signals) return {worker.begin(command, target.address, slot), target.bytes};
  if (command.verb == Verb::put_inline_signal && command.width > max_inline_bytes_with_signal) return {too_long};
  const Command signal = signal_of(command);
  const CommandTarget word = target_of(client, memory, signal);
  if (word.refused != nullptr) return {word.refused};
  if (const char* const reason = worker.begin(put, target.address, slot)) return {reason};
  return {worker.begin(signal, word.address, slot), target.bytes + word.bytes};
}

std::string what_is(const Command& command) {
  return command.sequence == 0 ? "a triggered operation" : fmt::format("command {}", command.sequence);
}

std::string text_of(const Command& command) {
  const auto verb = static_cast<std::uint8_t>(command.verb);
  const std::string name = verb < command_verbs ? verb_names[verb] : fmt::format("verb {}", verb);
  if (command.verb == Verb::trigger) return fmt::format("trigger of tag {} by {}", command.remote, command.local);
  if (command.verb == Verb::copy)
    return fmt::format("copy of {} bytes from {:#x} to {:#x}", command.row_bytes, command.local, command.remote);
  const std::string place = fmt::format("rank {}, offset {:#x} of its slot", command.peer, command.remote);
  if (moves_rows(command.verb) || command.verb == Verb::put_signal)
    return fmt::format("{} of {} x {} bytes, {}, here {:#x}", name, command.rows, command.row_bytes, place,
                       command.local);
  return fmt::format("{} of {} bytes, {}", name, command.width, place);
}

}  // namespace beeline
