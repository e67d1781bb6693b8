// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The device engine: one block of a rank's device that serves rings in the device's own memory. It runs for a *lease*:
/// it ends by itself, and the next lease continues from the state in memory.
///
/// The block carries out only these: puts and gets of one row, words, and payloads of commands, between addresses in
/// the table of reachable pieces. Commands to ranks of other nodes it posts to rings of the network's engine. It hands
/// all other commands to the host, which carries out or refuses them between leases as its own engine would. If queues
/// take triggers, one thread takes the commands of all queues, since completions trigger tags of other queues; it
/// carries out fired operations like posted commands.

#include <cstdint>

#include "beeline/control/impl/lease.hpp"
#include "beeline/core/command_protocol.hpp"
#include "beeline/device/impl/verbs.hpp"
#include "beeline/device/put_get.hpp"
#include "control/trigger_lists.hpp"

namespace beeline {

/// Memory that the block can load and store. Sorted by address.
struct ReachablePiece {
  std::uint64_t first, bytes;

  bool operator==(const ReachablePiece&) const = default;
  [[nodiscard]] BEELINE_HOST_DEVICE bool holds(std::uint64_t address, std::uint64_t span) const {
    return address - first < bytes && span <= bytes - (address - first);
  }
};

/// State of the command taken last from a ring.
enum class ServicePhase : std::uint32_t {
  ready,   ///< no command is in flight
  moving,  ///< the bytes of `command` are being moved
  handed,  ///< the host carries out the command
  sent     ///< the network's engine carries out the command
};

/// State of a ring that the block serves. In memory of the device.
struct ServedRing {
  Command command;
  std::uint64_t moved;           ///< bytes of `command`
  std::uint64_t next;            ///< ticket of the next command
  std::uint64_t refused;         ///< refused commands
  std::uint64_t handed;          ///< commands that were handed to the host
  std::uint64_t sent;            ///< commands that were posted to the network's engine
  std::uint64_t bytes, deepest;  ///< bytes moved in all; most commands taken at once
  ServicePhase phase;
  bool has_fired;  ///< whether the command in flight is of a triggered operation
};

/// A command that the block has handed to the host. In host memory; each word has one writer.
struct HandedCommand {
  Command command;         ///< of the queue, with its number; also one that was posted to the network's engine
  std::uint64_t number;    ///< counts the queue's commands that were handed over, from 1; stored last
  std::uint64_t answered;  ///< written by the host: `number`, once the command is done or refused
  std::uint64_t is_refused;
  std::uint64_t sent;      ///< counts the queue's commands that were posted to the network's engine
  std::uint64_t given_up;  ///< written by the host: `sent`, once it has refused a command that has not ended
};

/// The arguments of a lease.
struct Service {
  CommandRing* rings;     ///< [queues]
  ServedRing* served;     ///< [queues]
  HandedCommand* handed;  ///< [queues]
  const ReachablePiece* pieces;
  std::uint32_t queues, piece_count, ranks;
  Lease lease;
  TriggerLists triggers{};
  CommandRing* carried = nullptr;           ///< [queues] rings of the network's engine, in host memory; nullptr: none
  const std::uint8_t* is_remote = nullptr;  ///< [ranks] whether a rank is on another node, if there are such rings
};

/// A ring as the serving block accesses it: see command_protocol.hpp.
struct ServiceMemory {
  static constexpr std::uint32_t depth = command_ring_depth;
  using Word = detail::DeviceAtomic<std::uint64_t>;
  CommandRing* ring;

  [[nodiscard]] BEELINE_HOST_DEVICE Word sequence(std::uint64_t slot) const {
    return Word(ring->commands[slot].sequence);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE Word near_sequence(std::uint64_t slot) const { return sequence(slot); }
  [[nodiscard]] BEELINE_HOST_DEVICE const Command& read(std::uint64_t slot) const { return ring->commands[slot]; }
};

/// A thread's part of the service: the rings that it takes commands from, and its share of the bytes.
class ServiceThread {
 public:
  BEELINE_HOST_DEVICE ServiceThread(const Service& service, const Context& ctx) : service_(service), ctx_(ctx) {}

  /// Continues with the rings of number `first`, `first + step`, ...: the host may have answered, and memory may have
  /// been unmapped since the last lease.
  BEELINE_HOST_DEVICE void begin(std::uint32_t first, std::uint32_t step) {
    for (std::uint32_t i = first; i < service_.queues; i += step) {
      const ServedRing& served = service_.served[i];
      if (served.phase == ServicePhase::handed) take_answer(i);
      if (served.phase == ServicePhase::moving && !targets_of(served.command).are_sure) hand_over(i, served.command);
    }
    if (first == 0 && service_.triggers.tags != nullptr) service_.triggers.fire_met();
  }

  /// The result of a round over the thread's rings.
  struct Round {
    bool has_taken = false, is_moving = false, is_handed = false, is_sent = false;
  };
  /// Looks at the rings up to `looks` times, or until there are bytes to move or a command for the host. The block's
  /// threads synchronize only then, since a synchronization takes longer than a look.
  BEELINE_HOST_DEVICE Round take_commands(std::uint32_t first, std::uint32_t step, int looks = 1) {
    Round round;
    BEELINE_NO_UNROLL
    for (; looks > 0 && !round.is_moving && !round.is_handed; --looks)
      for (std::uint32_t i = first; i < service_.queues; i += step) {
        hold(i);
        if (held_.phase == ServicePhase::sent) end_sent(i);
        if (held_.phase == ServicePhase::ready) round.has_taken |= take_from();
        round.is_sent |= held_.phase == ServicePhase::sent;
        round.is_moving |= held_.phase == ServicePhase::moving;
        round.is_handed |= held_.phase == ServicePhase::handed;
      }
    return round;
  }

  /// Moves a part of the bytes of each ring whose command is being moved. Every thread of the block calls it.
  template <class Block>
  BEELINE_HOST_DEVICE void move(const Block& block) {
    // A single ring is known to be moving: reading its phase would delay the loads that follow.
    for (std::uint32_t i = 0; i < service_.queues; ++i)
      if (service_.queues == 1 || service_.served[i].phase == ServicePhase::moving) move_part(block, i);
    block.sync();
    held_.ring = no_ring;  // another thread may have ended the command of that ring
  }

  // --- Parts of a command's execution, which adapters use, too (adapters/adapter_block.hpp) ----------------------

  /// Bytes of a ring that are moved at a time; then it is another ring's turn.
  static constexpr std::uint64_t part_bytes = std::uint64_t{256} << 10;
  /// Up to this size the thread that takes the command moves the bytes itself: synchronizing the block takes longer.
  static constexpr std::uint64_t few_bytes = 64;

  /// The addresses that a command names at its peer, and whether the block may carry it out.
  struct Targets {
    std::uint64_t place, signal = 0;
    bool are_sure = false;
  };
  BEELINE_HOST_DEVICE Targets targets_of(const Command& command) {
    if (!has_signal(command)) {
      const std::uint64_t place = target_of(command);
      return {place, 0, place != 0};
    }
    const std::uint64_t place = target_of(put_of(command)), signal = target_of(signal_of(command));
    const bool fits = has_shape<VerbShape::to_peer>(command.verb) || command.width <= max_inline_bytes_with_signal;
    return {place, signal, fits && place != 0 && signal != 0};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE static bool moves(const Command& command) {
    return has_shape<VerbShape::to_peer, VerbShape::from_peer>(command.verb);
  }
  /// Carries out a command of few bytes by the calling thread. Returns the old value of an atomic.
  BEELINE_HOST_DEVICE std::uint64_t carry_out(const Command& command, const Targets& targets) const {
    std::uint64_t old = 0;
    if (moves(command))
      move_bytes(Thread{}, command, 0, command.row_bytes);
    else if (has_shape<VerbShape::payload>(command.verb))
      store_payload(reinterpret_cast<std::byte*>(targets.place), command);
    else
      old = detail::change_word(command, reinterpret_cast<void*>(targets.place));
    if (has_signal(command)) store_signal(targets.signal, command);
    return old;
  }
  template <class Group>
  BEELINE_HOST_DEVICE void move_bytes(const Group& group, const Command& command, std::uint64_t first,
                                      std::uint64_t bytes) const {
    auto* const remote = reinterpret_cast<std::byte*>(address_of(command.peer, command.remote) + first);
    auto* const local = reinterpret_cast<std::byte*>(command.local) + first;
    if (has_shape<VerbShape::from_peer>(command.verb))
      detail::copy_bytes(group, local, remote, bytes);
    else
      detail::copy_bytes(group, remote, local, bytes);
  }

  /// Ends the thread's lease. The next poster asks for a new lease; if there is still work, this thread asks itself.
  BEELINE_HOST_DEVICE void end(std::uint32_t first, std::uint32_t step) {
    bool has_work = false;
    for (std::uint32_t i = first; i < service_.queues; i += step) {
      const ServedRing& served = service_.served[i];
      has_work |= !detail::falls_asleep(ServiceMemory{&service_.rings[i]}, served.next, service_.lease.asleep_mark);
      has_work |= served.phase != ServicePhase::ready || service_.triggers.fired_in(i).first != 0;
    }
    if (has_work) service_.lease.ask();
  }

 private:
  /// Limit of commands of a ring at a time; then it is another ring's turn.
  static constexpr std::uint64_t commands_at_once = 64;

  static constexpr std::uint32_t no_ring = ~std::uint32_t{0};

  /// Copy of the state of the ring that the thread looked at last: nearly always its only one.
  struct HeldRing {
    std::uint32_t ring = no_ring;
    ServicePhase phase = ServicePhase::ready;
    std::uint64_t next = 0, refused = 0;
    FiredOperations fired{};
  };
  BEELINE_HOST_DEVICE void hold(std::uint32_t ring) {
    if (held_.ring == ring) return;
    const ServedRing& served = service_.served[ring];
    held_ = {ring, served.phase, served.next, served.refused, service_.triggers.fired_in(ring)};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE bool has_fired() const { return held_.fired.first != 0; }
  [[nodiscard]] BEELINE_HOST_DEVICE ServedRing& served() const { return service_.served[held_.ring]; }
  BEELINE_HOST_DEVICE void enter(ServicePhase phase) { served().phase = held_.phase = phase; }

  /// Stores a word that the host reads and posters do not.
  BEELINE_HOST_DEVICE static void publish_to_host(std::uint64_t& word, std::uint64_t value) {
    detail::SystemAtomic<std::uint64_t>(word).store(value, std::memory_order_release);
  }
  /// Stores a word for posters, after `fence_device`, which on a GPU releases several words at once.
  BEELINE_HOST_DEVICE static void publish(std::uint64_t& word, std::uint64_t value) {
    constexpr bool is_fenced = detail::executor == DeviceKind::gpu;
    detail::DeviceAtomic<std::uint64_t>(word).store(value,
                                                    is_fenced ? std::memory_order_relaxed : std::memory_order_release);
  }
  BEELINE_HOST_DEVICE static void fence() {
    if constexpr (detail::executor == DeviceKind::gpu) machine::fence_device();
  }
  /// Publishes, after a fence, that the commands before this ticket are done. Refusals are published first.
  BEELINE_HOST_DEVICE static void complete(CommandRing& ring, std::uint64_t ticket, std::uint64_t refused) {
    if (refused != 0) {
      publish(ring.refused.value, refused);
      fence();
    }
    const std::uint64_t done = DoneCount::of(ticket, refused != 0).word;
    publish(ring.completed.value, done);
    publish(ring.reusable.value, done);
  }

  BEELINE_HOST_DEVICE bool take_from() {
    CommandRing& ring = service_.rings[held_.ring];
    const ServiceMemory memory{&ring};
    const std::uint64_t before = held_.next;
    if (!has_fired() && !detail::is_posted(memory, before)) return false;
    bool any_done = false;
    std::uint64_t done = before, bytes = 0, commands = 0;
    do {
      const bool is_fired = has_fired();
      const Command command =
          is_fired ? service_.triggers.next_command(held_.fired) : detail::take_command(memory, held_.next++);
      if (held_.refused != 0) {
        ++held_.refused;
      } else if (service_.triggers.takes(command)) {
        count_trigger(command);
      } else if (!begin_command(command, bytes)) {
        served().has_fired = is_fired;
        break;
      }
      if (is_fired) end_fired(held_.ring, held_.refused == 0);
      if (has_fired()) continue;  // a trigger is complete when its operations are
      done = held_.next;
      any_done = true;
    } while (++commands < commands_at_once && (has_fired() || detail::is_posted(memory, held_.next)));
    // If a move has begun, it waits neither for the fence nor for the store of `taken`: `move_part` makes both. The
    // block's other threads see what this thread has acquired, since they synchronize with it before they move.
    const bool is_moving = held_.phase == ServicePhase::moving;
    if (any_done || !is_moving) fence();
    if (any_done) complete(ring, done, held_.refused);
    if (!is_moving) publish(ring.taken.value, held_.next);
    served().next = held_.next;
    served().refused = held_.refused;
    add_counts(served(), bytes, held_.next - before);
    return true;
  }

  /// Counts a trigger. No operation of the ring has fired before, so those that the trigger fires come next.
  BEELINE_HOST_DEVICE void count_trigger(const Command& command) {
    const auto tag = static_cast<std::uint32_t>(command.remote);
    const std::uint32_t first = service_.triggers.add(tag, command.local);
    if (tag % service_.queues == held_.ring) held_.fired = {first, 0, 0};
  }
  BEELINE_HOST_DEVICE void end_fired(std::uint32_t ring, bool is_done) {
    service_.triggers.end_command(ring, is_done);
    if (ring == held_.ring) held_.fired = service_.triggers.fired_in(ring);
  }
  /// Ends the command in flight.
  BEELINE_HOST_DEVICE void end_under_way(std::uint32_t ring) {
    ServedRing& served = service_.served[ring];
    served.phase = ServicePhase::ready;
    fence();
    publish(service_.rings[ring].taken.value, served.next);
    if (served.has_fired) end_fired(ring, served.refused == 0);
    if (service_.triggers.fired_in(ring).first == 0) complete(service_.rings[ring], served.next, served.refused);
  }

  /// Begins a command. Returns whether it is over.
  BEELINE_HOST_DEVICE bool begin_command(const Command& command, std::uint64_t& bytes) {
    const Targets targets = targets_of(command);
    if (!targets.are_sure) {
      if (is_for_other_node(command))
        send(command);
      else
        hand_over(held_.ring, command);
      held_.phase = served().phase;
      return false;
    }
    if (moves(command) && command.row_bytes > few_bytes) {
      served().command = command;
      served().moved = 0;
      enter(ServicePhase::moving);
      return false;
    }
    bytes += moves(command) ? command.row_bytes : command.width;
    static_cast<void>(carry_out(command, targets));
    return true;
  }
  BEELINE_HOST_DEVICE static void store_payload(std::byte* at, const Command& command) {
    if (command.width == sizeof(std::uint64_t) && reinterpret_cast<std::uintptr_t>(at) % sizeof(std::uint64_t) == 0)
      return machine::store_scalar(reinterpret_cast<std::uint64_t*>(at), command.local);
    const Command in_memory = command;  // a copy, so that other commands stay in registers
    detail::copy_bytes(Thread{}, at, &in_memory.local, command.width);
  }
  /// Sets a signal, after the block's earlier stores.
  BEELINE_HOST_DEVICE static void store_signal(std::uint64_t at, const Command& command) {
    detail::SystemAtomic<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(at))
        .store(command.local_stride, std::memory_order_release);
  }

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t address_of(std::uint32_t peer, std::uint64_t offset) const {
    return reinterpret_cast<std::uintptr_t>(ctx_.range) + (std::uint64_t{peer} << ctx_.slot_shift) + offset;
  }

  /// The target address of a command without a signal; 0 if the block may not carry it out.
  BEELINE_HOST_DEVICE std::uint64_t target_of(const Command& command) {
    if (command.answers || command.peer >= service_.ranks || command.remote >> ctx_.slot_shift != 0) return 0;
    const std::uint64_t target = address_of(command.peer, command.remote);
    if (moves(command)) {
      const bool fits = command.rows == 1 && command.row_bytes != 0 && reaches(remote_, target, command.row_bytes) &&
                        reaches(local_, command.local, command.row_bytes);
      return fits && !overlap(target, command.row_bytes, command.local, command.row_bytes) ? target : 0;
    }
    const bool is_payload =
        has_shape_alone<VerbShape::payload>(command.verb) && command.width != 0 && command.width <= max_inline_bytes;
    const bool changes = has_shape<VerbShape::word, VerbShape::atomic>(command.verb) && is_word(command);
    // Where kernels have no atomics in host memory, this rank's CPU thread changes the word.
    if (has_shape<VerbShape::atomic>(command.verb) && ctx_.is_guarded(reinterpret_cast<const void*>(target))) return 0;
    return (is_payload || changes) && reaches(remote_, target, command.width) ? target : 0;
  }

  /// Whether all bytes lie in one piece. `last` is the piece found last.
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

  [[nodiscard]] BEELINE_HOST_DEVICE bool is_for_other_node(const Command& command) const {
    return service_.carried != nullptr && !has_shape<VerbShape::between, VerbShape::count>(command.verb) &&
           command.peer < service_.ranks && service_.is_remote[command.peer] != 0;
  }
  /// Posts a command of the held ring to the network's engine. A ring has one such command at a time.
  BEELINE_HOST_DEVICE void send(const Command& command) {
    CommandRing& ring = service_.carried[held_.ring];
    ServedRing& from = served();
    service_.handed[held_.ring].command = command;  // for the text of a refusal
    Command& cell = ring.commands[from.sent % command_ring_depth];
    detail::copy_bytes(Thread{}, reinterpret_cast<std::byte*>(&cell.verb),
                       reinterpret_cast<const std::byte*>(&command.verb), sizeof command - offsetof(Command, verb));
    publish_to_host(cell.sequence, ++from.sent);
    publish_to_host(service_.handed[held_.ring].sent, from.sent);
    from.phase = ServicePhase::sent;
    detail::wake_engine_of({&ring, nullptr});
  }
  /// Ends the ring's command to another node, if it is over.
  BEELINE_HOST_DEVICE void end_sent(std::uint32_t ring) {
    ServedRing& served = service_.served[ring];
    const DoneCount over{detail::load_acquired(service_.carried[ring].completed.value)};
    const bool is_given_up = detail::load_acquired(service_.handed[ring].given_up) == served.sent;
    if (over.commands() < served.sent && !is_given_up) return;
    if (over.has_refused() || is_given_up) ++served.refused;
    end_under_way(ring);
    held_.ring = no_ring;
    hold(ring);
  }
  BEELINE_HOST_DEVICE void hand_over(std::uint32_t ring, const Command& command) {
    HandedCommand& handed = service_.handed[ring];
    ServedRing& served = service_.served[ring];
    handed.command = command;
    publish_to_host(handed.number, ++served.handed);
    served.phase = ServicePhase::handed;
  }
  BEELINE_HOST_DEVICE void take_answer(std::uint32_t ring) {
    const HandedCommand& handed = service_.handed[ring];
    ServedRing& served = service_.served[ring];
    if (detail::load_acquired(handed.answered) != served.handed) return;
    if (detail::load_acquired(handed.is_refused) != 0) ++served.refused;
    end_under_way(ring);
  }

  template <class Block>
  BEELINE_HOST_DEVICE void move_part(const Block& block, std::uint32_t ring) {
    ServedRing& served = service_.served[ring];
    const Command command = served.command;
    const std::uint64_t moved = served.moved, left = command.row_bytes - moved;
    const std::uint64_t bytes = left < part_bytes ? left : part_bytes;
    move_bytes(block, command, moved, bytes);
    block.sync();
    if (block.thread_rank() != 0) return;
    const bool is_last = bytes == left;
    if (is_last && has_signal(command)) store_signal(address_of(command.peer, command.remote_stride), command);
    served.moved = moved + bytes;
    add_counts(served, bytes, 0);
    if (is_last) return end_under_way(ring);
    if (moved != 0) return;
    fence();
    publish(service_.rings[ring].taken.value, served.next);
  }

  /// Adds to counts that the host may read at any time.
  BEELINE_HOST_DEVICE static void add_counts(ServedRing& served, std::uint64_t bytes, std::uint64_t taken) {
    detail::SystemAtomic<std::uint64_t>(served.bytes).store(served.bytes + bytes, std::memory_order_relaxed);
    if (taken > served.deepest)
      detail::SystemAtomic<std::uint64_t>(served.deepest).store(taken, std::memory_order_relaxed);
  }

  const Service& service_;
  const Context& ctx_;
  ReachablePiece remote_{}, local_{};
  HeldRing held_{};
};

/// The kernel of one lease.
struct ServiceKernel {
  static constexpr unsigned max_threads = 512;
  /// Looks at the rings between two synchronizations of the block: some 2 us.
  static constexpr int looks = 8;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, const Service& service) const {
    const auto& block = grid.block();
    const bool one_takes = service.triggers.tags != nullptr;
    const std::uint32_t first = one_takes && block.thread_rank() != 0 ? service.queues : block.thread_rank();
    const std::uint32_t step = one_takes ? 1 : block.size();
    ServiceThread thread(service, ctx);
    serve(thread, block, ctx, service.lease, first, step);
  }

  /// Serves the rings of number `first`, `first + step`, ... by the calling thread, until the lease ends.
  template <class Thread, class Block>
  BEELINE_HOST_DEVICE static void serve(Thread& thread, const Block& block, const Context& ctx, const Lease& lease,
                                        std::uint32_t first, std::uint32_t step) {
    const std::uint64_t start = machine::clock_ns();
    std::uint64_t busy_until = start;
    // The host's thread holds the lock of a user of memory until the lease ends.
    [[maybe_unused]] bool works = true;
    if constexpr (detail::executor == DeviceKind::host) works = detail::allow_wait_work(false);
    thread.begin(first, step);
    for (std::uint32_t idle = 0;;) {
      const ServiceThread::Round round = thread.take_commands(first, step, looks);
      if (block.any(round.is_moving)) thread.move(block);
      const std::uint64_t now = machine::clock_ns();
      const bool is_busy = round.has_taken || round.is_moving;
      if (is_busy || round.is_sent) busy_until = now;
      if (block.any(round.is_handed || now - start >= lease.lease_ns)) break;
      if (!block.any(now - busy_until < lease.idle_ns)) break;
      idle = is_busy ? 0 : idle + 1;
      if (idle > 0) machine::back_off(idle, ctx.polling);
    }
    thread.end(first, step);
    if constexpr (detail::executor == DeviceKind::host) static_cast<void>(detail::allow_wait_work(works));
  }
};

}  // namespace beeline
