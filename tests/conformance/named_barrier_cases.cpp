// SPDX-License-Identifier: Apache-2.0
// The barriers of a channel, chosen by name: in kernels by every group and by grids, as kernels on streams, with
// time-outs that continue.
#include "beeline/collectives/barrier.hpp"
#include "beeline/host/collectives.hpp"
#include "tests/conformance/group_kind.hpp"
#include "tests/conformance/latecomer.hpp"
#include "tests/conformance/rank_test.hpp"

namespace beeline_test::named_barrier_cases {

namespace {

using namespace beeline;

constexpr CollectiveOptions channel_options{.sessions = 4, .packet_bytes = 64, .staging_bytes = 256};

struct BoardArguments {
  CollectiveChannel channel;
  std::uint64_t* board;  ///< [2, ranks, blocks] word of each block of each rank, from the last even and odd round
  std::uint32_t first_round, rounds;
  Algorithm algorithm;
};

/// In each round every block writes a word to every rank; after the barrier all words must have arrived.
template <class Group>
BEELINE_HOST_DEVICE void write_board(const Group& group, const Context& ctx, const BoardArguments& a,
                                     std::uint64_t round, GroupPlace block) {
  std::uint64_t* board = a.board + (round & 1) * ctx.size * block.count;
  for (std::uint32_t peer = group.thread_rank(); peer < ctx.size; peer += group.size())
    put_value(ctx, &board[ctx.rank * block.count + block.index], round, peer);
}
/// A plain load: ThreadSanitizer checks that the barrier orders memory.
BEELINE_HOST_DEVICE inline void check_board(const Context& ctx, DeviceReport* report, const BoardArguments& a,
                                            std::uint64_t round, std::uint32_t blocks) {
  const std::uint64_t* board = a.board + (round & 1) * ctx.size * blocks;
  for (std::uint32_t i = 0; i < ctx.size * blocks; ++i)
    BEELINE_DEVICE_CHECK_EQ(report, round, *static_cast<const volatile std::uint64_t*>(&board[i]));
}

template <GroupKind kind>
struct GroupKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, BoardArguments a) const {
    const auto group = group_of<kind>(grid);
    if (place_of<kind>(grid).index != 0) return;
    for (std::uint64_t round = 1; round <= a.rounds; ++round) {
      write_board(group, ctx, a, round, {0, 1});
      // Alternates between two algorithms, which count the same rounds.
      const bool other = round % 4 == 0;
      Session session(group, ctx, a.channel);
      const Status status = barrier(session, {.algorithm = other ? Algorithm::alltoall : a.algorithm});
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
      check_board(ctx, report, a, round, 1);
    }
  }
};

struct GridKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, BoardArguments a) const {
    for (std::uint64_t round = 1; round <= a.rounds; ++round) {
      write_board(grid.block(), ctx, a, round, {grid.block_rank(), grid.blocks()});
      Session session(grid, ctx, a.channel);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, barrier(grid, session, a.algorithm));
      check_board(ctx, report, a, round, grid.blocks());
    }
  }
};

template <class Body>
void for_each_algorithm(const RankTest& test, Body body) {
  for (const MethodRow& row : method_rows)
    if (row.operation == Operation::barrier && row.is_by(Control::device) &&
        (!test.on_several_nodes() || row.algorithm == Algorithm::alltoall))
      body(row.algorithm);
}

BEELINE_CASE(sessions_across_nodes, barriers_by_name, 1) {
  World& world = test.world();
  const Collectives collectives(world, channel_options);
  // Only block 0 of a grid meets other ranks, so the grid may have more blocks than the channel has sessions.
  CollectiveOptions few_sessions = channel_options;
  few_sessions.sessions = 1;
  const Collectives narrow(world, few_sessions);
  const bool is_slow = under_thread_sanitizer || test.size() > 4 || test.on_several_nodes();
  const std::uint32_t rounds = test.on_gpu() ? 1000 : is_slow ? 20 : 100;
  for_each_algorithm(test, [&](Algorithm algorithm) {
    for_each_group_kind(world, [&]<GroupKind kind>() {
      const SymmetricArray<std::uint64_t> board(world, 2 * max_ranks, test.common_heap());
      test.run(test.shape(1, true), GroupKernel<kind>{},
               BoardArguments{collectives.channel(), board.data(), 1, world.mixed() ? 20 : rounds, algorithm},
               join(name(kind), " barriers by ", name(algorithm)));
    });
    const SymmetricArray<std::uint64_t> board(world, 2 * max_ranks * 3, test.common_heap());
    test.run(test.shape(3, true), GridKernel{}, BoardArguments{narrow.channel(), board.data(), 1, 20, algorithm},
             join("grids that meet by ", name(algorithm)));
  });
}

struct WriteKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, BoardArguments a) const {
    write_board(grid.block(), ctx, a, a.first_round, {0, 1});
  }
};
struct CheckKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid&, const Context& ctx, DeviceReport* report, BoardArguments a) const {
    check_board(ctx, report, a, a.first_round, 1);
  }
};

BEELINE_CASE(sessions, barriers_on_streams, 1) {
  World& world = test.world();
  Collectives collectives(world, channel_options);
  const SymmetricArray<std::uint64_t> board(world, 2 * max_ranks, test.common_heap());
  std::uint32_t round = 0;
  for (int i = 0; i < 5; ++i)
    for_each_algorithm(test, [&](Algorithm algorithm) {
      const BoardArguments arguments{collectives.channel(), board.data(), ++round, 1, algorithm};
      launch(world, test.shape(1, false), WriteKernel{}, arguments);
      collectives.barrier_on_stream({.algorithm = algorithm});
      test.run(test.shape(1, false), CheckKernel{}, arguments, join("barrier kernel by ", name(algorithm)));
    });
  world.barrier();
  try {
    collectives.barrier_on_stream({.algorithm = Algorithm::tree});
  } catch (const Error& error) {
    BEELINE_CHECK(std::string(error.what()).find("barrier has no algorithm tree") != std::string::npos);
    return;
  }
  throw CheckFailure("not refused: a barrier by tree");
}

struct LateArguments {
  CollectiveChannel channel;
  std::uint64_t* waiting;  ///< [ranks] at the late rank: the last round in which each other rank timed out
  std::uint32_t rounds;
  Algorithm algorithm;
};

/// One rank calls only after all others' calls have timed out; the repeated calls then continue, and no data is lost.
struct LateKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, LateArguments a) const {
    const auto& group = grid.block();
    Session session(group, ctx, a.channel);
    for (std::uint32_t round = 1; round <= a.rounds; ++round) {
      const std::uint32_t late = round % ctx.size;
      Status status = Status::timeout;
      if (ctx.rank == late) {
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait_for_others(group, ctx, a.waiting, round));
      } else {
        BEELINE_DEVICE_CHECK_EQ(report, Status::timeout,
                                barrier(session, {.timeout = Timeout{50'000}, .algorithm = a.algorithm}));
        BEELINE_DEVICE_CHECK_EQ(report, Status::timeout,
                                barrier(session, {.timeout = Timeout::test(), .algorithm = a.algorithm}));
        tell_latecomer(group, ctx, a.waiting, round, late);
      }
      while (status == Status::timeout)
        status = barrier(session, {.timeout = Timeout{100'000}, .algorithm = a.algorithm});
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
    }
  }
};

BEELINE_CASE(sessions_across_nodes, named_barriers_continue_after_a_timeout, 2) {
  const Collectives collectives(test.world(), channel_options);
  for_each_algorithm(test, [&](Algorithm algorithm) {
    const SymmetricArray<std::uint64_t> waiting(test.world(), max_ranks, test.common_heap());
    test.run(test.shape(1, true), LateKernel{}, LateArguments{collectives.channel(), waiting.data(), 6, algorithm},
             join(name(algorithm), " barriers with time-outs"));
  });
}

}  // namespace

}  // namespace beeline_test::named_barrier_cases
