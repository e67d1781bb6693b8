// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A resident block that serves the rings of a software adapter in memory of its device, by leases, as the device
/// engine serves command queues (service_block.hpp): its threads decode requests and carry out small ones, the whole
/// block moves the bytes of larger ones. Commands on memory that the block does not reach are refused.

#include <cstdint>

#include "control/service_block.hpp"

namespace beeline {

/// A command whose bytes are being moved or have been moved: its ring's thread completes it. In memory of the device.
struct AdapterMove {
  enum class Phase : std::uint32_t { none, moving, moved };
  Command command;
  std::uint64_t moved;
  Phase phase;
};

/// The arguments of a lease.
///   service  its members of command queues are not used
template <class Server>
struct AdapterService {
  Service service;
  typename Server::Ring* rings;  ///< [service.queues]
  AdapterMove* moves;            ///< [service.queues]
};

/// A thread's part of the service: see ServiceThread.
template <class Server>
class AdapterThread {
 public:
  BEELINE_HOST_DEVICE AdapterThread(const AdapterService<Server>& adapter, const Context& ctx)
      : adapter_(adapter), thread_(adapter.service, ctx) {}

  /// Continues with rings `first`, `first + step`, ...: memory may have been unmapped since the last lease.
  BEELINE_HOST_DEVICE void begin(std::uint32_t first, std::uint32_t step) {
    for (std::uint32_t i = first; i < adapter_.service.queues; i += step) {
      hold(i);
      mark_asleep(0);
      if (!is_moving_ || thread_.targets_of(move_of(i).command).are_sure) continue;
      if (move_of(i).phase == Phase::moving) server_.refused(move_of(i).command);
      end_move();
    }
  }

  BEELINE_HOST_DEVICE ServiceThread::Round take_commands(std::uint32_t first, std::uint32_t step, int looks = 1) {
    ServiceThread::Round round;
    BEELINE_NO_UNROLL
    for (; looks > 0 && !round.is_moving; --looks)
      for (std::uint32_t i = first; i < adapter_.service.queues; i += step) {
        hold(i);
        if (is_moving_ && move_of(i).phase == Phase::moved) end_move();
        if (!is_moving_) round.has_taken |= take_from();
        round.is_moving |= is_moving_;
      }
    return round;
  }

  /// Moves a part of the bytes of each command that is being moved. Every thread of the block calls it.
  template <class Block>
  BEELINE_HOST_DEVICE void move(const Block& block) {
    for (std::uint32_t i = 0; i < adapter_.service.queues; ++i)
      if (move_of(i).phase == Phase::moving) move_part(block, i);
    block.sync();
  }

  BEELINE_HOST_DEVICE void end(std::uint32_t first, std::uint32_t step) {
    bool has_work = false;
    for (std::uint32_t i = first; i < adapter_.service.queues; i += step) {
      hold(i);
      mark_asleep(adapter_.service.lease.asleep_mark);
      has_work |= is_moving_ || server_.has_next();
    }
    if (held_ != no_ring) server_.save();
    if (has_work) adapter_.service.lease.ask();
  }

 private:
  using Phase = AdapterMove::Phase;
  /// Most commands of a ring at a time; then it is another ring's turn.
  static constexpr int commands_at_once = 16;
  static constexpr std::uint32_t no_ring = ~std::uint32_t{0};

  [[nodiscard]] BEELINE_HOST_DEVICE AdapterMove& move_of(std::uint32_t ring) const { return adapter_.moves[ring]; }

  /// Makes `server_` the server of a ring, which is nearly always the thread's only ring.
  BEELINE_HOST_DEVICE void hold(std::uint32_t ring) {
    if (held_ == ring) return;
    if (held_ != no_ring) server_.save();
    held_ = ring;
    server_ = Server(adapter_.rings[ring]);
    is_moving_ = move_of(ring).phase != Phase::none;
  }

  /// Stores the mark before the doorbell is read; `wake_adapter` does the opposite. With a fence between the two on
  /// each side, at least one side sees the other's store.
  BEELINE_HOST_DEVICE void mark_asleep(std::uint64_t mark) const {
    detail::SystemAtomic<std::uint64_t>(*server_.asleep()).store(mark, std::memory_order_release);
    machine::fence_device_sequential();
  }

  BEELINE_HOST_DEVICE void end_move() {
    move_of(held_).phase = Phase::none;
    is_moving_ = false;
    server_.complete(move_of(held_).command.sequence);
  }

  /// Takes commands of the ring, and carries out those with few bytes. Returns whether there were any.
  BEELINE_HOST_DEVICE bool take_from() {
    Command command;
    if (!server_.take(command)) return false;
    std::uint64_t done = 0;
    int count = 0;
    do {
      if (!begin_command(command)) break;
      done = command.sequence;
    } while (++count < commands_at_once && server_.has_known() && server_.take(command));
    if (done != 0) server_.complete(done);
    return true;
  }

  /// Begins a command. Returns whether it is complete.
  BEELINE_HOST_DEVICE bool begin_command(const Command& command) {
    Command unanswered = command;  // the device engine's commands have no answers
    unanswered.answers = false;
    const ServiceThread::Targets targets = thread_.targets_of(unanswered);
    if (!targets.are_sure) {
      server_.refused(command);
      return true;
    }
    if (ServiceThread::moves(command) && command.row_bytes > ServiceThread::few_bytes) {
      move_of(held_) = {unanswered, 0, Phase::moving};
      is_moving_ = true;
      return false;
    }
    const std::uint64_t value = thread_.carry_out(unanswered, targets);
    if (command.answers) server_.answer(command, value);
    return true;
  }

  template <class Block>
  BEELINE_HOST_DEVICE void move_part(const Block& block, std::uint32_t ring) {
    AdapterMove& move = move_of(ring);
    const Command command = move.command;
    const std::uint64_t moved = move.moved, left = command.row_bytes - moved;
    const std::uint64_t bytes = left < ServiceThread::part_bytes ? left : ServiceThread::part_bytes;
    thread_.move_bytes(block, command, moved, bytes);
    block.sync();
    if (block.thread_rank() != 0) return;
    move.moved = moved + bytes;
    if (bytes == left) move.phase = Phase::moved;
  }

  const AdapterService<Server>& adapter_;
  ServiceThread thread_;
  std::uint32_t held_ = no_ring;
  Server server_{};         ///< of ring `held_`
  bool is_moving_ = false;  ///< whether a command of the ring is in its AdapterMove
};

/// The kernel of one lease.
template <class Server>
struct AdapterKernel {
  static constexpr unsigned max_threads = ServiceKernel::max_threads;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, const AdapterService<Server>& adapter) const {
    AdapterThread<Server> thread(adapter, ctx);
    ServiceKernel::serve(thread, grid.block(), ctx, adapter.service.lease, grid.block().thread_rank(),
                         grid.block().size());
  }
};

}  // namespace beeline
