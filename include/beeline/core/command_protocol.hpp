// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The loads and stores by which posters and an engine share a ring of commands, and their order. `Memory` is a
/// template parameter, so that a model checker runs the same lines (tests/model):
///
///   Memory::depth                      largest number of commands in flight in the ring; a power of two
///   Memory::has_answers                whether commands of the ring may have answers; if not, only `taken` guards the
///                                      slots
///   next(), known_taken(), waits()     words that the posters share, as in `CommandTickets`
///   freed(slot)
///   taken(), sequence(slot), answer_sequence(slot)             words of the ring, as atomic references
///   near_sequence(slot)                                        `sequence(slot)` of a ring in the posters' own memory
///   write(slot, fields), read(slot)    a command without its sequence
///   answer(slot)                       the answer's value, a plain word

#include <atomic>
#include <cstdint>

#include "beeline/core/macros.hpp"

namespace beeline::detail {

/// Whether the engine has taken the previous command in this ticket's slot. A GPU reads host memory slowly. So a poster
/// first tests the value of `taken` that a poster has read last. If many posters wait, only some of them read `taken`
/// itself.
///   known  value of `taken` that a poster has read last, loaded with acquire order
template <class Memory>
BEELINE_HOST_DEVICE bool is_taken(const Memory& memory, std::uint64_t ticket, std::uint64_t known, bool looks) {
  if (known + Memory::depth > ticket) return true;
  if (!looks) return false;
  const std::uint64_t taken = memory.taken().load(std::memory_order_acquire);
  // If another poster overwrites this with an older value, posters only read `taken` one time more.
  memory.known_taken().store(taken, std::memory_order_release);
  return taken + Memory::depth > ticket;
}

/// The result of a try to get a ticket.
enum class Claim { got, full, lost };

/// Takes the next ticket if its slot is free: the engine has taken the slot's last command, and that command's poster
/// has read the answer. A poster never waits while it holds a ticket. So a poster that gives up does not block others.
///   looks  whether this poster may read `taken` across the bus
template <class Memory>
BEELINE_HOST_DEVICE Claim try_claim(const Memory& memory, std::uint64_t& ticket, bool looks) {
  std::uint64_t first = memory.next().load(std::memory_order_relaxed);
  const std::uint64_t known = memory.known_taken().load(std::memory_order_acquire);  // in flight with the load above
  ticket = first;
  if (!is_taken(memory, first, known, looks)) return Claim::full;
  if (Memory::has_answers &&
      memory.freed(first % Memory::depth).load(std::memory_order_acquire) < first / Memory::depth)
    return Claim::full;
  return memory.next().compare_exchange_strong(first, first + 1, std::memory_order_relaxed) ? Claim::got : Claim::lost;
}

/// Writes a command into its slot. If the command has no answer, its poster has nothing more to read. The slot is then
/// marked as freed here, where this needs no fence, and only `taken` guards it.
template <class Memory, class Fields>
BEELINE_HOST_DEVICE void write_command(const Memory& memory, const Fields& fields, bool answers, std::uint64_t ticket) {
  if (Memory::has_answers && !answers)
    memory.freed(ticket % Memory::depth).store(ticket / Memory::depth + 1, std::memory_order_relaxed);
  memory.write(ticket % Memory::depth, fields);
}

/// Writes a command and publishes it: from now on the engine may take the command.
template <class Memory, class Fields>
BEELINE_HOST_DEVICE void publish_command(const Memory& memory, const Fields& fields, bool answers,
                                         std::uint64_t ticket) {
  write_command(memory, fields, answers, ticket);
  memory.sequence(ticket % Memory::depth).store(ticket + 1, std::memory_order_release);
}

/// A bit in the sequence of the next command's slot: set while the engine is asleep (it ends when it is idle).
inline constexpr std::uint64_t asleep_bit = std::uint64_t{1} << 63;

/// Publishes a command to an engine that may be asleep. Returns the mark of `falls_asleep` if the caller has to wake
/// the engine; otherwise 0. One exchange publishes the command and reads the mark. So either the engine sees the
/// command, or its poster sees the mark.
template <class Memory, class Fields>
BEELINE_HOST_DEVICE std::uint64_t publish_to_sleeper(const Memory& memory, const Fields& fields, bool answers,
                                                     std::uint64_t ticket) {
  write_command(memory, fields, answers, ticket);
  const std::uint64_t held =
      memory.near_sequence(ticket % Memory::depth).exchange(ticket + 1, std::memory_order_release);
  return (held & asleep_bit) == 0 ? 0 : held & ~asleep_bit;
}

/// Whether the answer to a command has arrived.
template <class Memory>
BEELINE_HOST_DEVICE bool is_answered(const Memory& memory, std::uint64_t ticket) {
  return memory.answer_sequence(ticket % Memory::depth).load(std::memory_order_acquire) > ticket;
}

/// Frees the slot of a command whose answer has been read.
template <class Memory>
BEELINE_HOST_DEVICE void free_slot(const Memory& memory, std::uint64_t ticket) {
  memory.freed(ticket % Memory::depth).store(ticket / Memory::depth + 1, std::memory_order_release);
}

/// For the engine: whether the command with this ticket has been posted.
template <class Memory>
BEELINE_HOST_DEVICE bool is_posted(const Memory& memory, std::uint64_t ticket) {
  return memory.sequence(ticket % Memory::depth).load(std::memory_order_acquire) == ticket + 1;
}

/// Copies a command that has been posted.
template <class Memory>
BEELINE_HOST_DEVICE auto take_command(const Memory& memory, std::uint64_t ticket) {
  return memory.read(ticket % Memory::depth);
}

/// Publishes to posters that the slots of all commands before this ticket may be written again. The engine does this
/// for several commands at once, since each store may cross a bus.
template <class Memory>
BEELINE_HOST_DEVICE void release_slots(const Memory& memory, std::uint64_t ticket) {
  memory.taken().store(ticket, std::memory_order_release);
}

template <class Memory>
void publish_answer(const Memory& memory, std::uint64_t ticket, std::uint64_t value) {
  memory.answer(ticket % Memory::depth) = value;
  memory.answer_sequence(ticket % Memory::depth).store(ticket + 1, std::memory_order_release);
}

/// Called when the engine goes to sleep before the command with this ticket: leaves a mark for the poster in the
/// command's slot. Returns false if the command has been posted meanwhile; the engine then has to continue, since no
/// poster wakes it.
///   mark  less than `asleep_bit`; 0: the engine is awake
template <class Memory>
BEELINE_HOST_DEVICE bool falls_asleep(const Memory& memory, std::uint64_t ticket, std::uint64_t mark) {
  const auto sequence = memory.near_sequence(ticket % Memory::depth);
  std::uint64_t held = sequence.load(std::memory_order_relaxed);
  return held != ticket + 1 && sequence.compare_exchange_strong(held, mark | asleep_bit, std::memory_order_relaxed);
}

}  // namespace beeline::detail
