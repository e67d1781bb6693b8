// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The device engine: one block of a rank's device that serves rings in the device's own memory. It runs for a *lease*:
/// it ends by itself, and the next lease continues from the state in memory.
///
/// The block carries out only these: puts and gets of one row, words, and payloads of commands, between addresses in
/// the table of reachable pieces. Commands to ranks of other nodes it posts to rings of the network's engine. It hands
/// all other commands to the host, which carries out or refuses them between leases as its own engine would.
/// Consecutive commands of a queue for one of the two are forwarded together. If queues take triggers, one thread takes
/// the commands of all queues, since completions trigger tags of other queues; it carries out fired operations like
/// posted commands.

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

/// State of the commands taken last from a ring.
enum class ServicePhase : std::uint32_t {
  ready,   ///< no command is in flight
  moving,  ///< the bytes of `command` are being moved
  handed,  ///< the host carries out commands
  sent     ///< the network's engine carries out commands
};

/// Limit of commands of a ring that are taken at a time; then it is another ring's turn.
inline constexpr std::uint32_t service_batch = 64;

/// State of a ring that the block serves. In memory of the device.
struct ServedRing {
  Command command;
  std::uint64_t moved;       ///< bytes of `command`
  std::uint64_t next;        ///< ticket of the next command
  std::uint64_t refused;     ///< refused commands
  std::uint64_t handed;      ///< commands that were handed to the host
  std::uint64_t sent, over;  ///< commands that were posted to the network's engine; of these, commands that are over
  std::uint64_t bytes, deepest;  ///< bytes moved in all; most commands taken at once
  ServicePhase phase;
  bool has_fired;  ///< whether the command in flight is of a triggered operation
};

/// The commands of a queue that the block has forwarded. In host memory; each word has one writer.
struct ForwardedCommands {
  Command handed[service_batch];  ///< commands that were handed to the host, with their numbers in the queue: `cell`
  std::uint64_t number;           ///< count of these commands; stored last
  std::uint64_t answered;         ///< written by the host: `number`, once all are done or refused
  std::uint64_t refused;          ///< written by the host before `answered`: how many of the last ones were refused
  std::uint64_t sent;             ///< count of commands that were posted to the network's engine
  std::uint64_t ahead;            ///< the queue's number of a command in flight there less that of the engine's ring
  std::uint64_t first_refused;    ///< number in that ring of the first command that was refused there; 0: none
  std::uint64_t given_up;         ///< number of the first command in flight that the host has given up; 0: none

  /// The cell of the command that was handed over as the n-th.
  [[nodiscard]] BEELINE_HOST_DEVICE Command& cell(std::uint64_t n) { return handed[(n - 1) % service_batch]; }
};

/// The arguments of a lease.
struct Service {
  CommandRing* rings;            ///< [queues]
  ServedRing* served;            ///< [queues]
  ForwardedCommands* forwarded;  ///< [queues]
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
      if (served.phase != ServicePhase::moving || targets_of(served.command).are_sure) continue;
      hand_over(i, served.command);
      publish_forwarded(i);
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
        if (held_.phase == ServicePhase::ready || held_.phase == ServicePhase::sent) round.has_taken |= take_from();
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

  /// Whether the held ring has a command that may be taken now. While forwarded commands are in flight, only posted
  /// commands may be that are forwarded likewise; all others, and those after a refusal, wait until none is in flight.
  BEELINE_HOST_DEVICE bool has_next(const ServiceMemory& memory) {
    if (held_.phase == ServicePhase::ready) return has_fired() || detail::is_posted(memory, held_.next);
    if (held_.phase == ServicePhase::moving || held_.refused != 0 || has_fired()) return false;
    const ServedRing& from = served();
    if (from.has_fired || !detail::is_posted(memory, held_.next)) return false;
    const Command& next = memory.read(held_.next % command_ring_depth);
    if (held_.phase == ServicePhase::sent) return from.sent - from.over < command_ring_depth && is_for_other_node(next);
    return !is_for_other_node(next) && !service_.triggers.takes(next) && !targets_of(next).are_sure;
  }

  BEELINE_HOST_DEVICE bool take_from() {
    CommandRing& ring = service_.rings[held_.ring];
    const ServiceMemory memory{&ring};
    const std::uint64_t before = held_.next;
    if (!has_next(memory)) return false;
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
        continue;
      }
      if (is_fired) end_fired(held_.ring, held_.refused == 0);
      if (has_fired()) continue;  // a trigger is complete when its operations are
      done = held_.next;
      any_done = true;
    } while (++commands < service_batch && has_next(memory));
    // If a move has begun, it waits neither for the fence nor for the store of `taken`: `move_part` makes both. The
    // block's other threads see what this thread has acquired, since they synchronize with it before they move.
    const bool is_moving = held_.phase == ServicePhase::moving;
    if (any_done || !is_moving) fence();
    if (any_done) complete(ring, done, held_.refused);
    if (!is_moving) publish(ring.taken.value, held_.next);
    served().next = held_.next;
    served().refused = held_.refused;
    add_counts(served(), bytes, held_.next - before);
    if (held_.phase != ServicePhase::ready && !is_moving) publish_forwarded(held_.ring);
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
  /// Ends the commands in flight.
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
  /// Posts a command of the held ring to the network's engine.
  BEELINE_HOST_DEVICE void send(const Command& command) {
    ServedRing& from = served();
    Command& cell = service_.carried[held_.ring].commands[from.sent++ % command_ring_depth];
    // In flight are consecutive posted commands, or one fired operation: all have the same difference.
    if (held_.phase != ServicePhase::sent) service_.forwarded[held_.ring].ahead = command.sequence - from.sent;
    detail::copy_bytes(Thread{}, reinterpret_cast<std::byte*>(&cell.verb),
                       reinterpret_cast<const std::byte*>(&command.verb), sizeof command - offsetof(Command, verb));
    publish_to_host(cell.sequence, from.sent);
    from.phase = ServicePhase::sent;
  }
  /// Ends the ring's commands to other nodes that are over.
  BEELINE_HOST_DEVICE void end_sent(std::uint32_t ring) {
    ServedRing& served = service_.served[ring];
    const ForwardedCommands& forwarded = service_.forwarded[ring];
    const std::uint64_t given_up = detail::load_acquired(forwarded.given_up);
    const std::uint64_t completed = DoneCount{detail::load_acquired(service_.carried[ring].completed.value)}.commands();
    const std::uint64_t before = served.over;
    served.over = given_up != 0 ? served.sent : completed;
    if (served.over == before) return;
    const std::uint64_t first_refused = given_up != 0 ? given_up : detail::load_acquired(forwarded.first_refused);
    if (first_refused != 0 && first_refused <= served.over)
      served.refused += served.over - (first_refused <= before ? before : first_refused - 1);
    if (served.over == served.sent)
      end_under_way(ring);
    else
      complete_first(ring);
    held_.ring = no_ring;
    hold(ring);
  }
  /// Publishes which commands are done before those in flight.
  BEELINE_HOST_DEVICE void complete_first(std::uint32_t ring) {
    const ServedRing& served = service_.served[ring];
    if (service_.triggers.fired_in(ring).first != 0) return;
    fence();
    complete(service_.rings[ring], served.next - (served.sent - served.over), served.refused);
  }
  BEELINE_HOST_DEVICE void hand_over(std::uint32_t ring, const Command& command) {
    ServedRing& served = service_.served[ring];
    service_.forwarded[ring].cell(++served.handed) = command;
    served.phase = ServicePhase::handed;
  }
  /// Notifies the host or the network's engine of the ring's forwarded commands.
  BEELINE_HOST_DEVICE void publish_forwarded(std::uint32_t ring) {
    const ServedRing& served = service_.served[ring];
    ForwardedCommands& forwarded = service_.forwarded[ring];
    if (served.phase == ServicePhase::handed) return publish_to_host(forwarded.number, served.handed);
    publish_to_host(forwarded.sent, served.sent);
    detail::wake_engine_of({&service_.carried[ring], nullptr});
  }
  BEELINE_HOST_DEVICE void take_answer(std::uint32_t ring) {
    const ForwardedCommands& forwarded = service_.forwarded[ring];
    ServedRing& served = service_.served[ring];
    if (detail::load_acquired(forwarded.answered) != served.handed) return;
    served.refused += detail::load_acquired(forwarded.refused);
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
  static constexpr unsigned max_threads = 512;  ///< more than start: see `room_of_block`
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
