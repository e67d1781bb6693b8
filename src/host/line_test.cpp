// SPDX-License-Identifier: Apache-2.0
// The self-test of ll128. There is no flow control: some warps store lines of changing data again and again, and others
// load them as fast as they can.
#include "host/line_test.hpp"

#include "beeline/device/impl/warp_machine.hpp"
#include "beeline/device/packets.hpp"
#include "beeline/host/launch.hpp"

namespace beeline::detail {

namespace {

/// Number of warps that store to each peer, and of warps that load the peer's lines. Each warp has lines of its own,
/// one for each of its stores.
constexpr unsigned warps = 4, threads = 32;
/// Enough for some ten thousand loads of changing lines.
constexpr std::uint64_t rounds = 20'000;

/// The words that a thread stores in a round; memory is zero before the first round.
BEELINE_HOST_DEVICE machine::PacketPair words_of(std::uint64_t round, unsigned thread) {
  if (round == 0) return {0, 0};
  const std::uint64_t word = round * 0x9e3779b97f4a7c15u + thread;
  return {word, thread % line_threads == line_threads - 1 ? round : ~word};
}

BEELINE_HOST_DEVICE void store_lines(machine::PacketPair* place) {
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    const machine::PacketPair words = words_of(round, machine::lane());
    machine::warp_sync();
    machine::store_packets(place, words);
  }
}

/// Polls this warp's lines until each shows the last round.
BEELINE_HOST_DEVICE LinesSeen look_at_lines(const Context& ctx, std::uint32_t peer, const machine::PacketPair* place) {
  const unsigned thread = machine::lane(), flag_thread = thread | (line_threads - 1);
  LinesSeen seen{0, 0};
  std::uint64_t round = 0;
  const auto has_come = [&] {
    machine::warp_sync();
    const machine::PacketPair words = machine::load_packets(place);
    round = machine::from_lane(words.high, flag_thread);
    const machine::PacketPair whole = words_of(round, thread);
    seen.torn += words.low != whole.low || words.high != whole.high ? 1 : 0;
    if (thread == flag_thread) ++seen.looks;
    return round == rounds;
  };
  static_cast<void>(poll_by_warp(ctx, Timeout::none(), has_come, [&](std::uint64_t& observed) {
    observed = round;
    return Awaited{Operation::setup, peer, 0, rounds};
  }));
  return seen;
}

/// The kernel of the test: one block for each peer, this rank included.
struct WatchLines {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, machine::PacketPair* lines,
                                      LinesSeen* seen) const {
    const std::uint32_t peer = (ctx.rank + grid.block_rank()) % ctx.size;
    const unsigned rank_in_block = grid.block().thread_rank(), place = rank_in_block % (warps * threads);
    if (rank_in_block < warps * threads) {
      store_lines(ctx.translate(lines, peer) + ctx.rank * warps * threads + place);
      return;
    }
    const LinesSeen mine = look_at_lines(ctx, peer, lines + peer * warps * threads + place);
    SystemAtomic<std::uint64_t>(seen[peer].looks).fetch_add(mine.looks, std::memory_order_relaxed);
    SystemAtomic<std::uint64_t>(seen[peer].torn).fetch_add(mine.torn, std::memory_order_relaxed);
  }
};

}  // namespace

std::vector<LinesSeen> watch_lines(Team& team) {
  World& world = team.world();
  const auto ranks = static_cast<unsigned>(team.size());
  const SymmetricArray<machine::PacketPair> lines(team, std::size_t{ranks} * warps * threads);
  const SymmetricArray<LinesSeen> seen(team, ranks);
  launch(team, {.blocks = ranks, .threads = 2 * warps * threads, .waits = true}, WatchLines{}, lines.data(),
         seen.data());
  world.synchronize();
  std::vector<LinesSeen> found(ranks);
  world.copy(found.data(), seen.data(), seen.bytes());
  return found;
}

}  // namespace beeline::detail
