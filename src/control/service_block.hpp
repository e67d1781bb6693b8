// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The device engine: one block of a rank's device that serves rings which lie in its own memory. It holds a *lease*:
/// it ends by itself, and goes on in the next one from what lies in memory.
///
/// The block does what it is sure of: puts and gets of one row, words, and payloads of commands, between places that
/// the table of reachable pieces has. Whatever else is posted it hands to the host, which does or refuses it between
/// leases as its own engine would.

#include <cstdint>

#include "beeline/control/impl/lease.hpp"
#include "beeline/core/command_protocol.hpp"
#include "beeline/device/put_get.hpp"
#include "control/change_word.hpp"
#include "control/command_shape.hpp"

namespace beeline {

/// Memory that the block loads and stores. Sorted by address.
struct ReachablePiece {
  std::uint64_t first, bytes;

  bool operator==(const ReachablePiece&) const = default;
  [[nodiscard]] BEELINE_HOST_DEVICE bool holds(std::uint64_t address, std::uint64_t span) const {
    return address - first < bytes && span <= bytes - (address - first);
  }
};

/// What becomes of a command that is taken.
enum class ServicePhase : std::uint32_t {
  ready,   ///< nothing is under way
  moving,  ///< bytes of `command`
  handed   ///< the host has `command`
};

/// What is taken from a ring, and done: in memory of the device.
struct ServedRing {
  Command command;
  std::uint64_t moved;           ///< bytes of `command`
  std::uint64_t next;            ///< ticket of the next command
  std::uint64_t refused;         ///< commands
  std::uint64_t bytes, deepest;  ///< moved in all; most commands taken at once
  ServicePhase phase;
};

/// A command that a block has handed to the host. In host memory; each word has one writer.
struct HandedCommand {
  Command command;         ///< its sequence is stored last
  std::uint64_t answered;  ///< by the host: that sequence, once it is done or refused
  std::uint64_t is_refused;
};

/// What a lease is for.
struct Service {
  CommandRing* rings;     ///< [queues]
  ServedRing* served;     ///< [queues]
  HandedCommand* handed;  ///< [queues]
  const ReachablePiece* pieces;
  std::uint32_t queues, piece_count, ranks;
  Lease lease;
};

/// A ring as a block sees it that serves it: see command_protocol.hpp.
struct ServiceMemory {
  static constexpr std::uint32_t depth = command_ring_depth;
  using Word = detail::SystemAtomic<std::uint64_t>;
  CommandRing* ring;

  [[nodiscard]] BEELINE_HOST_DEVICE Word taken() const { return Word(ring->taken.value); }
  [[nodiscard]] BEELINE_HOST_DEVICE Word asleep() const { return Word(ring->asleep.value); }
  [[nodiscard]] BEELINE_HOST_DEVICE Word sequence(std::uint64_t slot) const {
    return Word(ring->commands[slot].sequence);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE const Command& read(std::uint64_t slot) const { return ring->commands[slot]; }
};

/// A thread's part in the service: the rings that it takes commands from, and its share of the bytes.
class ServiceThread {
 public:
  BEELINE_HOST_DEVICE ServiceThread(const Service& service, const Context& ctx) : service_(service), ctx_(ctx) {}

  /// Goes on with the rings of number `first`, `first + step`, ...: the host has answered, and memory may have gone.
  BEELINE_HOST_DEVICE void begin(std::uint32_t first, std::uint32_t step) {
    for (std::uint32_t i = first; i < service_.queues; i += step) {
      const ServedRing& served = service_.served[i];
      if (served.phase == ServicePhase::handed) take_answer(i);
      if (served.phase == ServicePhase::moving && target_of(served.command) == 0) hand_over(i, served.command);
    }
  }

  /// What a round over these rings has found.
  struct Round {
    bool has_taken = false, is_moving = false, is_handed = false;
  };
  BEELINE_HOST_DEVICE Round take_commands(std::uint32_t first, std::uint32_t step) {
    Round round;
    for (std::uint32_t i = first; i < service_.queues; i += step) {
      if (service_.served[i].phase == ServicePhase::ready) round.has_taken |= take_from(i);
      round.is_moving |= service_.served[i].phase == ServicePhase::moving;
      round.is_handed |= service_.served[i].phase == ServicePhase::handed;
    }
    return round;
  }

  /// Moves a part of what rings want moved. Every thread of the block calls it.
  template <class Block>
  BEELINE_HOST_DEVICE void move(const Block& block) {
    for (std::uint32_t i = 0; i < service_.queues; ++i)
      if (service_.served[i].phase == ServicePhase::moving) move_part(block, i);
  }

  /// Leaves the rings to whoever posts next, or asks for the next lease itself.
  BEELINE_HOST_DEVICE void end(std::uint32_t first, std::uint32_t step) {
    bool has_work = false;
    for (std::uint32_t i = first; i < service_.queues; i += step) {
      const ServedRing& served = service_.served[i];
      has_work |= !detail::falls_asleep(ServiceMemory{&service_.rings[i]}, served.next, service_.lease.asleep_mark);
      has_work |= served.phase != ServicePhase::ready;
    }
    if (has_work) service_.lease.ask();
  }

 private:
  /// Commands of a ring at a time, and bytes: then it is others' turn.
  static constexpr std::uint64_t commands_at_once = 64;
  static constexpr std::uint64_t part_bytes = std::uint64_t{256} << 10;

  BEELINE_HOST_DEVICE static void store(std::uint64_t& word, std::uint64_t value, cuda::memory_order order) {
    detail::SystemAtomic<std::uint64_t>(word).store(value, order);
  }
  /// The commands before this ticket are done. Those that were refused come first. What `quiet` waits for comes before
  /// what only posters to a full ring do: a release waits for what the thread has stored at peers.
  BEELINE_HOST_DEVICE void complete(std::uint32_t ring, std::uint64_t ticket) {
    CommandRing& to = service_.rings[ring];
    const std::uint64_t refused = service_.served[ring].refused;
    if (refused != 0) store(to.refused.value, refused, cuda::memory_order_release);
    const std::uint64_t done = DoneCount::of(ticket, refused != 0).word;
    store(to.completed.value, done, cuda::memory_order_release);
    store(to.reusable.value, done, cuda::memory_order_release);
  }

  BEELINE_HOST_DEVICE bool take_from(std::uint32_t ring) {
    ServedRing& served = service_.served[ring];
    const ServiceMemory memory{&service_.rings[ring]};
    const std::uint64_t before = served.next;
    std::uint64_t done = before, bytes = 0;
    for (; served.next - before < commands_at_once && detail::is_posted(memory, served.next); ++served.next) {
      const Command command = detail::take_command(memory, served.next);
      if (served.refused != 0) {
        ++served.refused;
      } else if (!begin_command(ring, command, bytes)) {
        ++served.next;
        break;
      }
      done = served.next + 1;
    }
    if (served.next == before) return false;
    if (done != before) complete(ring, done);
    detail::release_slots(memory, served.next);
    add_counts(served, bytes, served.next - before);
    return true;
  }

  /// Whether the command is over.
  BEELINE_HOST_DEVICE bool begin_command(std::uint32_t ring, const Command& command, std::uint64_t& bytes) {
    ServedRing& served = service_.served[ring];
    const std::uint64_t target = target_of(command);
    if (target == 0) {
      hand_over(ring, command);
      return false;
    }
    if (command.verb == Verb::put || command.verb == Verb::get) {
      served.command = command;
      served.moved = 0;
      served.phase = ServicePhase::moving;
      return false;
    }
    bytes += command.width;
    auto* const at = reinterpret_cast<std::byte*>(target);
    if (command.verb == Verb::put_inline)
      detail::copy_bytes(Thread{}, at, &command.local, command.width);
    else
      static_cast<void>(detail::change_word(command, at));
    return true;
  }

  /// Where a command's place at its peer is; 0: the block is not sure that it may do it.
  BEELINE_HOST_DEVICE std::uint64_t target_of(const Command& command) {
    if (command.answers || command.peer >= service_.ranks || command.remote >> ctx_.slot_shift != 0) return 0;
    const std::uint64_t target = reinterpret_cast<std::uintptr_t>(ctx_.range) +
                                 (std::uint64_t{command.peer} << ctx_.slot_shift) + command.remote;
    if (command.verb == Verb::put || command.verb == Verb::get) {
      const bool fits = command.rows == 1 && command.row_bytes != 0 && reaches(remote_, target, command.row_bytes) &&
                        reaches(local_, command.local, command.row_bytes);
      return fits && !overlap(target, command.row_bytes, command.local, command.row_bytes) ? target : 0;
    }
    const bool is_payload = command.verb == Verb::put_inline && command.width != 0 && command.width <= max_inline_bytes;
    const bool changes = command.verb > Verb::get && command.verb <= Verb::compare_swap && is_word(command);
    return (is_payload || changes) && reaches(remote_, target, command.width) ? target : 0;
  }

  /// Whether all of it lies in one piece, of which the thread remembers the last.
  BEELINE_HOST_DEVICE bool reaches(ReachablePiece& last, std::uint64_t address, std::uint64_t span) const {
    if (last.holds(address, span)) return true;
    std::uint32_t low = 0, high = service_.piece_count;
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (service_.pieces[middle].first <= address)
        low = middle + 1;
      else
        high = middle;
    }
    if (low == 0) return false;
    last = service_.pieces[low - 1];
    return last.holds(address, span);
  }

  BEELINE_HOST_DEVICE void hand_over(std::uint32_t ring, const Command& command) {
    HandedCommand& handed = service_.handed[ring];
    Command unnumbered = command;
    unnumbered.sequence = handed.command.sequence;
    handed.command = unnumbered;
    store(handed.command.sequence, command.sequence, cuda::memory_order_release);
    service_.served[ring].phase = ServicePhase::handed;
  }
  BEELINE_HOST_DEVICE void take_answer(std::uint32_t ring) {
    const HandedCommand& handed = service_.handed[ring];
    ServedRing& served = service_.served[ring];
    if (detail::load_acquired(handed.answered) != served.next) return;
    if (detail::load_acquired(handed.is_refused) != 0) ++served.refused;
    served.phase = ServicePhase::ready;
    complete(ring, served.next);
  }

  template <class Block>
  BEELINE_HOST_DEVICE void move_part(const Block& block, std::uint32_t ring) {
    ServedRing& served = service_.served[ring];
    const std::uint64_t moved = served.moved, left = served.command.row_bytes - moved;
    const std::uint64_t bytes = left < part_bytes ? left : part_bytes;
    auto* const remote = reinterpret_cast<std::byte*>(ctx_.range) +
                         (std::uint64_t{served.command.peer} << ctx_.slot_shift) + served.command.remote + moved;
    auto* const local = reinterpret_cast<std::byte*>(served.command.local) + moved;
    if (served.command.verb == Verb::put)
      detail::copy_bytes(block, remote, local, bytes);
    else
      detail::copy_bytes(block, local, remote, bytes);
    block.sync();
    if (block.thread_rank() != 0) return;
    served.moved = moved + bytes;
    add_counts(served, bytes, 0);
    if (bytes != left) return;
    served.phase = ServicePhase::ready;
    complete(ring, served.next);
  }

  /// The host reads them at any time.
  BEELINE_HOST_DEVICE static void add_counts(ServedRing& served, std::uint64_t bytes, std::uint64_t taken) {
    detail::SystemAtomic<std::uint64_t>(served.bytes).store(served.bytes + bytes, cuda::memory_order_relaxed);
    if (taken > served.deepest)
      detail::SystemAtomic<std::uint64_t>(served.deepest).store(taken, cuda::memory_order_relaxed);
  }

  const Service& service_;
  const Context& ctx_;
  ReachablePiece remote_{}, local_{};
};

/// One lease.
struct ServiceKernel {
  static constexpr unsigned max_threads = 512;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Service service) const {
    const auto& block = grid.block();
    const std::uint32_t first = block.thread_rank(), step = block.size();
    ServiceThread thread(service, ctx);
    const std::uint64_t start = machine::clock_ns();
    std::uint64_t busy_until = start;
    thread.begin(first, step);
    for (std::uint32_t idle = 0;;) {
      const ServiceThread::Round round = thread.take_commands(first, step);
      if (block.any(round.is_moving)) thread.move(block);
      const std::uint64_t now = machine::clock_ns();
      const bool is_busy = round.has_taken || round.is_moving;
      if (is_busy) busy_until = now;
      if (block.any(round.is_handed || now - start >= service.lease.lease_ns)) break;
      if (!block.any(now - busy_until < service.lease.idle_ns)) break;
      idle = is_busy ? 0 : idle + 1;
      if (idle > 0) machine::back_off(idle, ctx.polling);
    }
    thread.end(first, step);
  }
};

}  // namespace beeline
