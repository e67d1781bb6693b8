// SPDX-License-Identifier: Apache-2.0
#include "host/guarded_moves.hpp"

#include <algorithm>

#include "beeline/device/put_get.hpp"
#include "host/carried_wait.hpp"
#include "host/grid_room.hpp"

namespace beeline {

namespace {

constexpr unsigned threads = 512;
/// Bytes for each block: one block moves up to this size no slower than several blocks, which take time to start.
constexpr std::size_t bytes_of_block = std::size_t{16} << 10;

/// The kernel of an operation. Its first thread decides for all blocks, and for the operation's second kernel.
struct GuardedMove {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, StreamMove first, StreamMove second,
                                      MoveGuard guard) const {
    const auto& block = grid.block();
    const bool moves =
        block.thread_rank() == 0 && (grid.block_rank() == 0 ? decide(guard) : await_decision(ctx, guard));
    if (!block.any(moves)) return;
    move(grid, ctx, first);
    block.sync();
    move(grid, ctx, second);
  }

 private:
  BEELINE_HOST_DEVICE static bool decide(const MoveGuard& guard) {
    const detail::DeviceAtomic<std::uint64_t> verdict(*guard.verdict);
    const std::uint64_t known = verdict.load(std::memory_order_relaxed);
    if (known / 4 == guard.number) return known % 4 == GuardWords::moves;
    const detail::SystemAtomic<std::uint64_t> decided(guard.words->decided);
    decided.store(GuardWords::decision(guard.number, GuardWords::looks), std::memory_order_relaxed);
    machine::fence_system();
    const bool moves =
        detail::load_acquired(guard.words->cancelled) != guard.number && detail::load_acquired(*guard.released) == 0;
    const std::uint64_t decision = GuardWords::decision(guard.number, moves ? GuardWords::moves : GuardWords::skips);
    decided.store(decision, std::memory_order_release);
    verdict.store(decision, std::memory_order_release);
    return moves;
  }
  BEELINE_HOST_DEVICE static bool await_decision(const Context& ctx, const MoveGuard& guard) {
    const detail::DeviceAtomic<std::uint64_t> verdict(*guard.verdict);
    std::uint64_t known = 0;
    const Status status = detail::await_engine(ctx, {.heeds_abort = false}, [&] {
      known = verdict.load(std::memory_order_acquire);
      return known / 4 == guard.number;
    });
    return status == Status::ok && known % 4 == GuardWords::moves;
  }

  /// Posts a move to the engine, and waits until it is in place. The failing operation records the failure.
  template <class Group>
  BEELINE_COLD BEELINE_HOST_DEVICE static void carry(Group block, const Context& ctx, StreamMove what) {
    Status status = Status::ok;
    if (what.signal != nullptr) {
      const detail::Request store{Operation::signal, Verb::store, sizeof what.value, 0, 0, what.peer};
      status = detail::change_by_engine(block, ctx, store, QueueId{}, what.signal, what.value);
    } else {
      const void* const remote = what.puts ? what.to : what.from;
      const detail::LocalRows rows{what.puts ? what.from : what.to, 1, what.bytes, 0, 0};
      status = detail::move_by_engine(block, ctx, detail::move_request(what.puts, what.peer), QueueId{}, remote, rows);
    }
    if (status == Status::ok && what.puts)
      static_cast<void>(detail::await_carried(block, ctx, Operation::quiet, what.peer));
  }

  template <class Grid>
  BEELINE_HOST_DEVICE static void move(const Grid& grid, const Context& ctx, const StreamMove& what) {
    const auto& block = grid.block();
    if (what.peer != no_peer) return carry(block, ctx, what);
    if (what.signal != nullptr) {
      if (block.thread_rank() == 0) detail::store_signal(what.signal, what.value, Order::memory);
      return;
    }
    if (what.to == nullptr) return;
    // Each block copies whole pages.
    constexpr std::size_t grain = 4096;
    const std::size_t share = ((what.bytes + grid.blocks() - 1) / grid.blocks() + grain - 1) / grain * grain;
    const std::size_t begin = share * grid.block_rank() < what.bytes ? share * grid.block_rank() : what.bytes;
    const std::size_t end = begin + share < what.bytes ? begin + share : what.bytes;
    detail::copy_bytes(block, static_cast<std::byte*>(what.to) + begin,
                       static_cast<const std::byte*>(what.from) + begin, end - begin);
  }
};

void start(Team& team, Stream& stream, unsigned blocks, const StreamMove& first, const StreamMove& second,
           const MoveGuard& guard) {
  launch(team, {.blocks = blocks, .threads = threads, .stream = &stream, .name = "guarded move"}, GuardedMove{}, first,
         second, guard);
}

}  // namespace

void start_guarded_move(Team& team, Stream& stream, const StreamMove& first, const StreamMove& second,
                        const MoveGuard& guard) {
  const std::size_t blocks = (first.bytes + bytes_of_block - 1) / bytes_of_block;
  const bool is_carried = first.peer != no_peer;  // by the engine, to which one block posts
  if (blocks <= 1 || is_carried || !team.world().device().is_gpu()) return start(team, stream, 1, first, second, guard);
  start(team, stream, static_cast<unsigned>(std::min<std::size_t>(blocks, most_guarded_blocks)), first, {}, guard);
  if (second.signal != nullptr || second.to != nullptr) start(team, stream, 1, second, {}, guard);
}

ReservedRoom room_of_guarded_moves(World& world) {
  return room_of_grid<GuardedMove, StreamMove, StreamMove, MoveGuard>(world, threads, most_guarded_blocks);
}

}  // namespace beeline
