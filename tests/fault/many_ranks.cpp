// SPDX-License-Identifier: Apache-2.0
// many-ranks [RANK [throws]]: each rank tries what a world of more ranks than a node can have supports. With RANK, that
// rank comes to no barrier, or throws while the others send. Ranks of a node need not be consecutive.
// tests/python/test_many_ranks.py starts it.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "beeline/beeline.hpp"
#include "beeline/host/paths.hpp"
#include "tests/support/check.hpp"

using namespace beeline;

namespace {

/// The next rank, and the rank that is half the world further on.
std::vector<int> peers_of(const World& world) {
  return {(world.rank() + 1) % world.size(), (world.rank() + world.size() / 2) % world.size()};
}

struct PutKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* board, std::uint64_t value,
                                      std::uint32_t peer) const {
    if (grid.thread_rank() == 0) static_cast<void>(put_value(ctx, board + ctx.rank, value, peer));
  }
};

void try_puts(World& world) {
  const auto ranks = static_cast<std::size_t>(world.size());
  const SymmetricArray<std::uint64_t> board(world, ranks), counter(world, 1);
  for (std::uint64_t round = 1; round <= 3; ++round) {
    for (const int peer : peers_of(world)) {
      const auto to = static_cast<std::uint32_t>(peer);
      launch(world, {}, PutKernel{}, board.data(), round, to);
      BEELINE_CHECK(signal_add(Thread{}, world.host_context(), counter.data(), 1, to) == Status::ok);
    }
    world.synchronize();
    world.barrier();
    BEELINE_CHECK_EQ(2 * round, counter.data()[0]);
    const auto from = static_cast<std::size_t>(world.rank() + world.size() - 1) % ranks;
    BEELINE_CHECK_EQ(round, board.data()[from]);
    world.barrier();
  }
  for (const int peer : peers_of(world)) {
    const auto from = static_cast<std::uint32_t>(peer);
    std::uint64_t value = 0;
    BEELINE_CHECK(get(Thread{}, world.host_context(), &value, board.data() + (peer + world.size() - 1) % world.size(),
                      1, from) == Status::ok);
    BEELINE_CHECK_EQ(std::uint64_t{3}, value);
    std::uint64_t before = 0;
    BEELINE_CHECK(atomic_fetch_add(world.host_context(), counter.data(), std::uint64_t{10}, from, before) ==
                  Status::ok);
    BEELINE_CHECK(before >= 6 && before <= 16);
  }
  world.barrier();
  BEELINE_CHECK_EQ(std::uint64_t{26}, counter.data()[0]);
}

struct BarrierKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* board) const {
    const std::uint32_t ahead = (ctx.rank + ctx.size / 2) % ctx.size;
    for (std::uint64_t round = 1; round <= 3; ++round) {
      if (grid.thread_rank() == 0) static_cast<void>(put_value(ctx, board, round, ahead, QueueId{1}));
      Status status = barrier(grid.block(), ctx, Order::memory, Timeout::test());
      while (status == Status::timeout) status = barrier(grid.block(), ctx, Order::memory, Timeout{1'000'000});
      if (status != Status::ok || board[0] != round) return;
      if (barrier(grid.block(), ctx) != Status::ok) return;  // the word is read before the next put to it
    }
    board[1] = 1;
  }
};

/// Barriers in kernels, with time-outs.
void try_kernel_barriers(World& world) {
  const SymmetricArray<std::uint64_t> board(world, 2);
  world.barrier();
  launch(world, {.waits = true}, BarrierKernel{}, board.data());
  world.synchronize();
  BEELINE_CHECK_EQ(std::uint64_t{1}, board.data()[1]);
  world.barrier();
}

/// Loads and stores reach the members on this rank's node, whatever their ranks in the team, and no others.
void try_addresses(World& world) {
  const SymmetricArray<std::uint64_t> board(world, static_cast<std::size_t>(world.size()));
  int near = 0;
  for (std::uint32_t peer = 0; peer < world.host_context().size; ++peer) {
    if (path_to(world, static_cast<int>(peer)).operations != "loads and stores") continue;
    ++near;
    world.host_context().at(board.data(), peer)[world.rank()] = 5;
  }
  BEELINE_CHECK(near >= 1 && near <= static_cast<int>(max_node_ranks));
  world.barrier();
  BEELINE_CHECK_EQ(static_cast<std::uint64_t>(5 * near),
                   std::accumulate(board.data(), board.data() + world.size(), std::uint64_t{0}));
  world.barrier();
}

struct LargestKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel,
                                      std::int64_t* value) const {
    Session session(grid.block(), ctx, channel);
    static_cast<void>(allreduce(session, value, value, 1, Reduction::maximum));
  }
};

void try_collectives(Team& team) {
  const auto ranks = static_cast<std::size_t>(team.size());
  const int rank = team.rank(), last = team.size() - 1;
  BEELINE_CHECK_EQ(team.size(), team.allreduce(1));
  BEELINE_CHECK_EQ(last, team.allreduce(rank, Reduction::maximum));
  Collectives collectives(team);
  std::vector<std::int64_t> mine(1000, rank), sums(1000), all(ranks), given(ranks, rank), taken(ranks);
  collectives.allreduce(sums, mine);
  BEELINE_CHECK_EQ(std::int64_t{last} * (last + 1) / 2, sums.back());
  collectives.broadcast(mine, last);
  BEELINE_CHECK_EQ(std::int64_t{last}, mine.back());
  collectives.allgather(all, std::vector<std::int64_t>{rank});
  collectives.alltoall(taken, given);
  std::vector<std::size_t> counts(ranks, 1), offsets(ranks);
  std::iota(offsets.begin(), offsets.end(), std::size_t{0});
  std::vector<std::int64_t> varied(ranks);
  collectives.alltoallv(varied, given, {counts, offsets, counts, offsets});
  for (std::size_t member = 0; member < ranks; ++member) {
    BEELINE_CHECK_EQ(static_cast<std::int64_t>(member), all[member]);
    BEELINE_CHECK_EQ(static_cast<std::int64_t>(member), taken[member]);
    BEELINE_CHECK_EQ(static_cast<std::int64_t>(member), varied[member]);
  }
  std::int64_t piece = 0;
  collectives.reduce_scatter(std::span(&piece, 1), given);
  BEELINE_CHECK_EQ(std::int64_t{last} * (last + 1) / 2, piece);
  piece = rank;
  launch(team, {.waits = true}, LargestKernel{}, collectives.channel(), &piece);
  team.world().synchronize();
  BEELINE_CHECK_EQ(std::int64_t{last}, piece);
  collectives.barrier();
}

void try_messages(World& world) {
  Messages messages(world);
  const int ahead = (world.rank() + 1) % world.size(), behind = (world.rank() + world.size() - 1) % world.size();
  const std::vector<int> sent(5000, world.rank());
  std::vector<int> received(sent.size());
  messages.send_receive(sent, ahead, received, behind);
  BEELINE_CHECK_EQ(behind, received.back());
}

/// A barrier is repeated after time-outs while one rank is late.
void try_polls(World& world) {
  if (world.rank() == world.size() - 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  int polls = 1;
  while (world.barrier(Timeout{100'000}) == Status::timeout) ++polls;
  world.barrier();
  BEELINE_CHECK(world.allreduce(polls) > world.size());
}

void try_all(World& world) {
  BEELINE_CHECK(world.size() > static_cast<int>(max_node_ranks));
  for (int round = 0; round < 20; ++round) world.barrier();
  try_polls(world);
  try_puts(world);
  try_kernel_barriers(world);
  try_addresses(world);
  try_collectives(world);
  try_messages(world);
  std::vector<int> many(static_cast<std::size_t>(world.size()) - 1);
  std::iota(many.begin(), many.end(), 1);  // all but rank 0
  const std::unique_ptr<Team> team = world.make_team(world.rank() == 0 ? std::vector<int>{} : many);
  if (team) try_collectives(*team);
  world.barrier();
}

void send_and_throw(World& world, int thrower) {
  const SymmetricArray<std::uint64_t> counter(world, 1);
  for (int step = 1; step <= 8; ++step) {
    const auto peer = static_cast<std::uint32_t>((world.rank() + step * world.size() / 9) % world.size());
    static_cast<void>(signal_add(Thread{}, world.host_context(), counter.data(), 1, peer));
  }
  if (world.rank() == thrower) throw std::runtime_error("thrown on purpose");
  world.barrier();
}

/// The errors of all other ranks name the rank that does not come to a barrier.
void miss(World& world, int absent) {
  if (world.rank() == absent) {
    while (!world.failed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return;
  }
  try {
    world.barrier();
  } catch (const Error& error) {
    BEELINE_CHECK_CONTAINS(error.what(), "barrier on rank " + std::to_string(absent));
    return;
  }
  throw beeline_test::CheckFailure("no error");
}

}  // namespace

int main(int argument_count, char** arguments) {
  const int absent = argument_count > 1 ? std::atoi(arguments[1]) : -1;
  return run([=](World& world) {
    if (argument_count > 2)
      send_and_throw(world, absent);
    else if (absent >= 0)
      miss(world, absent);
    else
      try_all(world);
    std::printf("rank %d has tried it\n", world.rank());
  });
}
