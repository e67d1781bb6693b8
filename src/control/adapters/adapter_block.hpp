// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A resident block that serves the rings of a software adapter in memory of its device, by leases, as the device
/// engine serves command queues (service_block.hpp): its threads decode and do small requests, the whole block moves
/// larger ones. Commands on memory that the block does not reach are refused.

#include <cstdint>

#include "control/service_block.hpp"

namespace beeline {

/// Bytes of a command that are being moved. In memory of the device.
struct AdapterMove {
  Command command;
  std::uint64_t moved;
  bool is_moving;
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
      mark_asleep(i, 0);
      AdapterMove& move = adapter_.moves[i];
      if (!move.is_moving || thread_.targets_of(move.command).are_sure) continue;
      move.is_moving = false;
      Server(adapter_.rings[i]).refused(move.command);
      Server(adapter_.rings[i]).complete(move.command.sequence);
    }
  }

  BEELINE_HOST_DEVICE ServiceThread::Round take_commands(std::uint32_t first, std::uint32_t step, int looks = 1) {
    ServiceThread::Round round;
    BEELINE_NO_UNROLL
    for (; looks > 0 && !round.is_moving; --looks)
      for (std::uint32_t i = first; i < adapter_.service.queues; i += step) {
        if (!adapter_.moves[i].is_moving) round.has_taken |= take_from(i);
        round.is_moving |= adapter_.moves[i].is_moving;
      }
    return round;
  }

  /// Moves a part of the bytes of each command that is being moved. Every thread of the block calls it.
  template <class Block>
  BEELINE_HOST_DEVICE void move(const Block& block) {
    for (std::uint32_t i = 0; i < adapter_.service.queues; ++i)
      if (adapter_.moves[i].is_moving) move_part(block, i);
    block.sync();
  }

  BEELINE_HOST_DEVICE void end(std::uint32_t first, std::uint32_t step) {
    bool has_work = false;
    for (std::uint32_t i = first; i < adapter_.service.queues; i += step) {
      mark_asleep(i, adapter_.service.lease.asleep_mark);
      has_work |= adapter_.moves[i].is_moving || Server(adapter_.rings[i]).has_next();
    }
    if (has_work) adapter_.service.lease.ask();
  }

 private:
  /// Most commands of a ring at a time; then it is another ring's turn.
  static constexpr int commands_at_once = 16;

  /// Posters exchange the word, too: one of both exchanges comes first.
  BEELINE_HOST_DEVICE void mark_asleep(std::uint32_t ring, std::uint64_t mark) const {
    detail::SystemAtomic<std::uint64_t>(*Server(adapter_.rings[ring]).asleep())
        .exchange(mark, std::memory_order_acq_rel);
  }

  /// Takes commands of a ring, and carries out those with few bytes. Returns whether there were any.
  BEELINE_HOST_DEVICE bool take_from(std::uint32_t ring) {
    Server server(adapter_.rings[ring]);
    if (!server.has_next()) return false;
    Command command;
    std::uint64_t done = 0;
    BEELINE_NO_UNROLL
    for (int i = 0; i < commands_at_once && server.take(command); ++i) {
      if (!begin_command(server, command, ring)) break;
      done = command.sequence;
    }
    if (done != 0) server.complete(done);
    return true;
  }

  /// Begins a command. Returns whether it is over.
  BEELINE_HOST_DEVICE bool begin_command(Server& server, const Command& command, std::uint32_t ring) {
    Command unanswered = command;  // the device engine's commands have no answers
    unanswered.answers = false;
    const ServiceThread::Targets targets = thread_.targets_of(unanswered);
    if (!targets.are_sure) {
      server.refused(command);
      return true;
    }
    if (ServiceThread::moves(command) && command.row_bytes > ServiceThread::few_bytes) {
      adapter_.moves[ring] = {unanswered, 0, true};
      return false;
    }
    const std::uint64_t value = thread_.carry_out(unanswered, targets);
    if (command.answers) server.answer(command, value);
    return true;
  }

  template <class Block>
  BEELINE_HOST_DEVICE void move_part(const Block& block, std::uint32_t ring) {
    AdapterMove& move = adapter_.moves[ring];
    const Command command = move.command;
    const std::uint64_t moved = move.moved, left = command.row_bytes - moved;
    const std::uint64_t bytes = left < ServiceThread::part_bytes ? left : ServiceThread::part_bytes;
    thread_.move_bytes(block, command, moved, bytes);
    block.sync();
    if (block.thread_rank() != 0) return;
    move.moved = moved + bytes;
    if (bytes != left) return;
    move.is_moving = false;
    Server(adapter_.rings[ring]).complete(command.sequence);
  }

  const AdapterService<Server>& adapter_;
  ServiceThread thread_;
};

/// The kernel of one lease.
template <class Server>
struct AdapterKernel {
  static constexpr unsigned max_threads = ServiceKernel::max_threads;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, AdapterService<Server> adapter) const {
    AdapterThread<Server> thread(adapter, ctx);
    ServiceKernel::serve(thread, grid.block(), ctx, adapter.service.lease, grid.block().thread_rank(),
                         grid.block().size());
  }
};

}  // namespace beeline
