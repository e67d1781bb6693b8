// SPDX-License-Identifier: Apache-2.0
#include "host/guarded_moves.hpp"

#include <algorithm>

#include "beeline/host/launch.hpp"
#include "host/leased_grid.hpp"

namespace beeline {

namespace {

constexpr unsigned threads = 512;
/// Bytes for each block: one block moves up to this size no slower than several blocks, which take time to start.
constexpr std::size_t bytes_of_block = std::size_t{16} << 10;

void start(Team& team, Stream& stream, unsigned blocks, const StreamMove& first, const StreamMove& second,
           const MoveGuard& guard) {
  launch(team, {.blocks = blocks, .threads = threads, .stream = &stream, .name = "guarded move"}, GuardedMove{}, first,
         second, guard);
}

}  // namespace

void start_guarded_move(Team& team, Stream& stream, const StreamMove& first, const StreamMove& second,
                        const MoveGuard& guard) {
  const std::size_t blocks = (first.bytes + bytes_of_block - 1) / bytes_of_block;
  if (blocks <= 1 || !team.world().device().is_gpu()) return start(team, stream, 1, first, second, guard);
  start(team, stream, static_cast<unsigned>(std::min<std::size_t>(blocks, most_guarded_blocks)), first, {}, guard);
  if (second.signal != nullptr || second.to != nullptr) start(team, stream, 1, second, {}, guard);
}

double share_of_guarded_moves(World& world) {
  const unsigned resident = resident_blocks<GuardedMove, StreamMove, StreamMove, MoveGuard>(world, threads);
  return LeasedGrid::share_of(world, resident, most_guarded_blocks);
}

}  // namespace beeline
