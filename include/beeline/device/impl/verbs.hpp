// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The table of verbs: their names, their shapes, and their effect on a word. Posters, checks, engines and texts read
/// the table. A new verb is an enumerator in core/command.hpp and a row here; a verb that changes a word also has a
/// line in `change`.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <type_traits>
#include <utility>

#include "beeline/core/command.hpp"
#include "beeline/device/impl/atomic_word.hpp"
#include "beeline/device/impl/scalar_machine.hpp"

namespace beeline {

/// The data that a command moves or changes, and the fields that describe them. "Rows" are `rows` rows of `row_bytes`
/// bytes.
enum class VerbShape : std::uint8_t {
  to_peer,    ///< rows, from `local` to `remote`, an offset in the peer's slot
  from_peer,  ///< rows, from `remote`, an offset in the peer's slot, to `local`
  between,    ///< rows, from the address `local` to the address `remote`, without a peer
  payload,    ///< `width` bytes that the command itself holds, to `remote`
  word,       ///< the word at `remote`, which becomes `local`
  atomic,     ///< the word at `remote`, which is changed by `local`; its old value is the answer
  count,      ///< the count of the tag `remote`, which grows by `local`
  entries     ///< `rows` entries of `row_bytes` bytes from `local`: operations on the peer, carried out in their order
};

struct VerbInfo {
  Verb verb;
  const char* name;
  VerbShape shape;
  bool has_signal = false;    ///< sets the signal at `remote_stride` to `local_stride` afterwards
  bool needs_answer = false;  ///< without its answer the command is of no use to the poster
};

/// The rows, in the order of the enumerators.
inline constexpr VerbInfo verb_infos[] = {
    {Verb::put, "put", VerbShape::to_peer},
    {Verb::get, "get", VerbShape::from_peer},
    {Verb::store, "store", VerbShape::word},
    {Verb::add, "add", VerbShape::atomic},
    {Verb::bit_and, "bit_and", VerbShape::atomic},
    {Verb::bit_or, "bit_or", VerbShape::atomic},
    {Verb::bit_xor, "bit_xor", VerbShape::atomic},
    {Verb::minimum, "minimum", VerbShape::atomic},
    {Verb::maximum, "maximum", VerbShape::atomic},
    {Verb::exchange, "exchange", VerbShape::atomic},
    {Verb::compare_swap, "compare_swap", VerbShape::atomic, false, true},
    {Verb::put_inline, "put_inline", VerbShape::payload},
    {Verb::copy, "copy", VerbShape::between},
    {Verb::trigger, "trigger", VerbShape::count},
    {Verb::put_signal, "put_signal", VerbShape::to_peer, true},
    {Verb::put_inline_signal, "put_inline_signal", VerbShape::payload, true},
    {Verb::batch, "batch", VerbShape::entries},
};
inline constexpr std::size_t command_verbs = std::size(verb_infos);

namespace detail {

consteval bool verbs_are_in_order() {
  for (std::size_t row = 0; row < command_verbs; ++row)
    if (verb_infos[row].verb != static_cast<Verb>(row)) return false;
  return true;
}
static_assert(verbs_are_in_order(), "each verb has a row");

/// Whether `Of::holds` is true for the row of `verb`. It compiles to comparisons with constants, so that GPU code needs
/// no table.
template <class Of, std::size_t... rows>
BEELINE_HOST_DEVICE constexpr bool is_verb(Verb verb, std::index_sequence<rows...>) {
  return ((std::bool_constant<Of::holds(verb_infos[rows])>::value && verb == static_cast<Verb>(rows)) || ...);
}
template <class Of>
BEELINE_HOST_DEVICE constexpr bool is_verb(Verb verb) {
  return is_verb<Of>(verb, std::make_index_sequence<command_verbs>());
}

template <VerbShape... shapes>
struct OfShape {
  static constexpr bool holds(const VerbInfo& verb) { return ((verb.shape == shapes) || ...); }
};
template <VerbShape... shapes>
struct OfShapeAlone {
  static constexpr bool holds(const VerbInfo& verb) { return OfShape<shapes...>::holds(verb) && !verb.has_signal; }
};
struct WithSignal {
  static constexpr bool holds(const VerbInfo& verb) { return verb.has_signal; }
};
struct AtomicWithoutAnswer {
  static constexpr bool holds(const VerbInfo& verb) { return verb.shape == VerbShape::atomic && !verb.needs_answer; }
};

}  // namespace detail

template <VerbShape... shapes>
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool has_shape(Verb verb) {
  return detail::is_verb<detail::OfShape<shapes...>>(verb);
}
/// As `has_shape`, for verbs without a signal; false for every verb with a signal.
template <VerbShape... shapes>
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool has_shape_alone(Verb verb) {
  return detail::is_verb<detail::OfShapeAlone<shapes...>>(verb);
}
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool has_signal(const Command& command) {
  return detail::is_verb<detail::WithSignal>(command.verb);
}
/// Whether a verb is an atomic that is useful without the word's old value.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool is_atomic_without_answer(Verb verb) {
  return detail::is_verb<detail::AtomicWithoutAnswer>(verb);
}
/// The row of a verb; nullptr if there is no such verb.
[[nodiscard]] constexpr const VerbInfo* find_verb(Verb verb) {
  const auto row = static_cast<std::size_t>(verb);
  return row < command_verbs ? &verb_infos[row] : nullptr;
}

/// A command with a signal, reduced to its put.
[[nodiscard]] BEELINE_HOST_DEVICE inline Command put_of(const Command& command) {
  Command put = command;
  put.verb = has_shape<VerbShape::to_peer>(command.verb) ? Verb::put : Verb::put_inline;
  put.remote_stride = put.local_stride = 0;
  return put;
}
/// The signal of a command with a signal, as a command.
[[nodiscard]] BEELINE_HOST_DEVICE inline Command signal_of(const Command& command) {
  Command signal{};
  signal.sequence = command.sequence, signal.verb = Verb::store, signal.width = sizeof(std::uint64_t);
  signal.peer = command.peer, signal.remote = command.remote_stride, signal.local = command.local_stride;
  return signal;
}

/// Whether a batch may have entries of a verb: it needs no answer, and an entry has room for its fields.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool is_for_batch(Verb verb) {
  return has_shape_alone<VerbShape::to_peer, VerbShape::payload, VerbShape::word>(verb) ||
         is_atomic_without_answer(verb);
}
/// An entry of a batch, as a command.
[[nodiscard]] BEELINE_HOST_DEVICE inline Command command_of(const Command& batch, const BatchEntry& entry) {
  Command command{};
  command.sequence = batch.sequence, command.peer = batch.peer;
  command.verb = entry.verb(), command.width = entry.width();
  command.remote = entry.remote(), command.local = entry.local;
  const bool moves = has_shape<VerbShape::to_peer>(command.verb);
  command.rows = moves ? 1 : entry.bytes, command.row_bytes = moves ? entry.bytes : 0;
  return command;
}

/// Whether width and alignment of a command on a word are valid for its verb.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool is_word(const Command& command) {
  const std::uint64_t width = command.width;
  const bool is_scalar = width == 1 || width == 2 || width == 4 || width == 8;
  return is_scalar && (command.remote & (width - 1)) == 0 && (has_shape<VerbShape::word>(command.verb) || width >= 4);
}

namespace detail {

/// Applies a verb to a word, and returns the word's old value.
///   expected  the expected value of compare_swap
template <Verb verb, class T>
BEELINE_HOST_DEVICE T change(machine::SystemAtomic<T> word, T value, [[maybe_unused]] T expected,
                             std::memory_order order) {
  if constexpr (verb == Verb::add) return word.fetch_add(value, order);
  if constexpr (verb == Verb::bit_and) return word.fetch_and(value, order);
  if constexpr (verb == Verb::bit_or) return word.fetch_or(value, order);
  if constexpr (verb == Verb::bit_xor) return word.fetch_xor(value, order);
  if constexpr (verb == Verb::minimum) return word.fetch_min(value, order);
  if constexpr (verb == Verb::maximum) return word.fetch_max(value, order);
  if constexpr (verb == Verb::exchange) return word.exchange(value, order);
  if constexpr (verb == Verb::compare_swap) word.compare_exchange_strong(expected, value, order);
  return expected;
}

/// Calls `change` with the verb of the command; a verb that is not atomic stores.
template <class T, std::size_t... rows>
BEELINE_HOST_DEVICE T change_as(const Command& command, void* at, std::index_sequence<rows...>) {
  constexpr auto order = std::memory_order_seq_cst;
  const machine::SystemAtomic<T> word(*static_cast<T*>(at));
  const T operand = static_cast<T>(command.local);
  T held = 0;
  const bool is_changed = ([&] {
    if constexpr (verb_infos[rows].shape == VerbShape::atomic) {
      if (command.verb != static_cast<Verb>(rows)) return false;
      held = change<static_cast<Verb>(rows)>(word, operand, static_cast<T>(command.rows), order);
      return true;
    }
    return false;
  }() || ...);
  if (!is_changed) word.store(operand, std::memory_order_release);
  return held;
}

/// The reference execution of a command on a word. Returns the old value of an atomic.
BEELINE_HOST_DEVICE inline std::uint64_t change_word(const Command& command, void* at) {
  constexpr std::make_index_sequence<command_verbs> rows;
  switch (command.width) {
    case 1:
      machine::store_scalar(static_cast<std::uint8_t*>(at), static_cast<std::uint8_t>(command.local));
      return 0;
    case 2:
      machine::store_scalar(static_cast<std::uint16_t*>(at), static_cast<std::uint16_t>(command.local));
      return 0;
    case 4:
      return command.is_signed ? static_cast<std::uint32_t>(change_as<std::int32_t>(command, at, rows))
                               : change_as<std::uint32_t>(command, at, rows);
    default:
      return command.is_signed ? static_cast<std::uint64_t>(change_as<std::int64_t>(command, at, rows))
                               : change_as<std::uint64_t>(command, at, rows);
  }
}

/// The reference execution of a command or an entry that holds its bytes, by a CPU thread. An aligned word is stored
/// atomically, since a receiver may wait for it.
template <class Holder>
void put_inline(const Holder& holder, std::size_t width, void* at) {
  if (width == sizeof(std::uint64_t) && reinterpret_cast<std::uintptr_t>(at) % sizeof(std::uint64_t) == 0)
    machine::SystemAtomic<std::uint64_t>(*static_cast<std::uint64_t*>(at))
        .store(holder.local, std::memory_order_release);
  else
    std::memcpy(at, &holder.local, width);
}
inline void put_inline(const Command& command, void* at) { put_inline(command, command.width, at); }

}  // namespace detail

/// The rows that a command moves, as addresses, and the strides at both ends.
struct RowMove {
  std::byte* to;
  const std::byte* from;
  std::uint64_t rows, row_bytes, to_stride, from_stride;
  bool is_readable = false;  ///< the poster vouches for `from`: SourceKind::readable
  bool is_writable = false;  ///< the same for `to`

  /// Bytes from the start of the first row to the end of the last row.
  [[nodiscard]] std::uint64_t to_span() const { return (rows - 1) * to_stride + row_bytes; }
  [[nodiscard]] std::uint64_t from_span() const { return (rows - 1) * from_stride + row_bytes; }
  /// Calls `copy(to, from, row_bytes)` for each row, until it returns false. Returns whether all calls returned true.
  template <class Copy>
  bool for_rows(Copy copy) const {
    for (std::uint64_t row = 0; row < rows; ++row)
      if (!copy(to + row * to_stride, from + row * from_stride, row_bytes)) return false;
    return true;
  }
};

/// The rows of a command that moves rows.
///   remote  the address of the command's rows at its peer
[[nodiscard]] inline RowMove rows_of(const Command& command, std::byte* remote) {
  auto* const local = reinterpret_cast<std::byte*>(command.local);
  if (has_shape<VerbShape::from_peer>(command.verb))
    return {local, remote, command.rows, command.row_bytes, command.local_stride, command.remote_stride};
  const bool is_readable = has_shape<VerbShape::to_peer>(command.verb) && command.is_signed;
  if (has_signal(command)) return {remote, local, command.rows, command.row_bytes, 0, 0, is_readable};
  return {remote, local, command.rows, command.row_bytes, command.remote_stride, command.local_stride, is_readable};
}

/// Whether [a, a + bytes) and [b, b + more) have bytes in common.
[[nodiscard]] BEELINE_HOST_DEVICE inline bool overlap(std::uint64_t a, std::uint64_t bytes, std::uint64_t b,
                                                      std::uint64_t more) {
  return a < b ? b - a < bytes : a - b < more;
}

}  // namespace beeline
