// SPDX-License-Identifier: Apache-2.0
// The barrier by every group, ordering memory or not, with time-outs that continue; the barrier of a grid; addresses in
// kernels.
#include <algorithm>

#include "tests/conformance/group_kind.hpp"
#include "tests/conformance/latecomer.hpp"
#include "tests/conformance/rank_test.hpp"

namespace beeline_test::barrier_cases {

namespace {

using namespace beeline;

struct BoardArguments {
  std::uint64_t* board;  ///< [2, max_ranks] word of each rank, from the last even and odd round
  std::uint32_t rounds;
  Order order;
  bool keep_open;  ///< one Barrier object for all rounds, instead of one for each
};

/// In each round every rank writes a word to every other; after the barrier all words must have arrived.
struct BoardKernel {
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, DeviceReport* report,
                                      BoardArguments a) const {
    Barrier barrier(group, ctx);
    for (std::uint64_t round = 1; round <= a.rounds; ++round) {
      std::uint64_t* board = a.board + (round & 1) * max_ranks;
      for (std::uint32_t peer = group.thread_rank(); peer < ctx.size; peer += group.size())
        put_value(ctx, &board[ctx.rank], round, peer);
      if (a.order == Order::relaxed) static_cast<void>(quiet(group, ctx));
      const Status status = a.keep_open ? barrier.sync(a.order) : beeline::barrier(group, ctx, a.order);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
      if (a.order == Order::relaxed) fence();
      for (std::uint32_t peer = 0; peer < ctx.size; ++peer)
        BEELINE_DEVICE_CHECK_EQ(report, round, read(board[peer], a.order));
    }
  }
  /// A plain load if the barrier orders memory: ThreadSanitizer then checks that it does.
  BEELINE_HOST_DEVICE static std::uint64_t read(std::uint64_t& word, Order order) {
    if (order == Order::memory) return *static_cast<volatile std::uint64_t*>(&word);
    return detail::SystemAtomic<std::uint64_t>(word).load(std::memory_order_relaxed);
  }
};

template <GroupKind kind>
void board_by(RankTest& test) {
  const bool is_slow = under_thread_sanitizer || test.size() > 4 || test.on_several_nodes();
  const std::uint32_t rounds = is_slow ? 20 : test.on_gpu() && !test.world().mixed() ? 2000 : 200;
  for (const Order order : {Order::memory, Order::relaxed})
    for (const bool keep_open : {true, false}) {
      const SymmetricArray<std::uint64_t> board(test.world(), 2 * max_ranks, test.common_heap());
      test.run(test.shape(1, true), FirstGroup<kind, BoardKernel>{},
               BoardArguments{board.data(), rounds, order, keep_open},
               join(name(kind), " barriers, ", (order == Order::memory ? "memory" : "relaxed"), ", ",
                    (keep_open ? "kept open" : "one each")));
    }
}

BEELINE_CASE(barrier, barrier_by_every_group, 1) {
  for_each_group_kind(test.world(), [&]<GroupKind kind>() { board_by<kind>(test); });
}

struct ThirdArguments {
  std::uint64_t *word, *seen;  ///< [1], [1]
  std::uint32_t rounds;
};

/// Each rank puts to the next one; after a barrier that orders memory every rank gets what its next one has put. The
/// barriers that follow each other without a put in between do not wait for their own signals.
struct ThirdKernel {
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, DeviceReport* report,
                                      const ThirdArguments& a) const {
    Barrier barrier(group, ctx);
    const std::uint32_t next = (ctx.rank + 1) % ctx.size, third = (ctx.rank + 2) % ctx.size;
    for (std::uint64_t round = 1; round <= a.rounds; ++round) {
      if (group.thread_rank() == 0) put_value(ctx, a.word, round, next);
      for (std::uint64_t i = 0; i < round % 3 + 1; ++i)
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok, barrier.sync(Order::memory));
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, get(group, ctx, a.seen, a.word, 1, third));
      group.sync();
      BEELINE_DEVICE_CHECK_EQ(report, round, *static_cast<volatile std::uint64_t*>(a.seen));
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, barrier.sync(Order::memory));
    }
  }
};

BEELINE_CASE(barrier, barrier_orders_puts_for_third_ranks, 3) {
  const SymmetricArray<std::uint64_t> word(test.world(), 1, test.common_heap()), seen(test.world(), 1);
  test.run(test.shape(1, true), FirstGroup<GroupKind::block, ThirdKernel>{},
           ThirdArguments{word.data(), seen.data(), under_thread_sanitizer ? 20u : 100u}, "puts seen by third ranks");
}

struct LateArguments {
  std::uint64_t* waiting;  ///< [ranks] at the late rank: the last round in which each other rank timed out
  std::uint32_t rounds;
};

/// One rank calls only after all others' calls have timed out; the repeated calls then continue, and no data is lost.
struct LateKernel {
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, DeviceReport* report,
                                      LateArguments a) const {
    Barrier barrier(group, ctx);
    for (std::uint32_t round = 1; round <= a.rounds; ++round) {
      const std::uint32_t late = round % ctx.size;
      Status status = Status::timeout;
      if (ctx.rank == late) {
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait_for_others(group, ctx, a.waiting, round));
      } else {
        BEELINE_DEVICE_CHECK_EQ(report, Status::timeout, barrier.sync(Order::memory, Timeout{50'000}));
        BEELINE_DEVICE_CHECK_EQ(report, Status::timeout, barrier.sync(Order::memory, Timeout::test()));
        tell_latecomer(group, ctx, a.waiting, round, late);
      }
      while (status == Status::timeout) status = barrier.sync(Order::memory, Timeout{100'000});
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
    }
  }
};

BEELINE_CASE(barrier, barrier_continues_after_a_timeout, 2) {
  for_each_group_kind(test.world(), [&]<GroupKind kind>() {
    const SymmetricArray<std::uint64_t> waiting(test.world(), max_ranks, test.common_heap());
    test.run(test.shape(1, true), FirstGroup<kind, LateKernel>{}, LateArguments{waiting.data(), 6},
             join(name(kind), " barriers with time-outs"));
  });
}

struct GridArguments {
  std::uint32_t* cells;  ///< [2, blocks]
  std::uint32_t rounds;
};

struct GridKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, GridArguments a) const {
    BEELINE_DEVICE_CHECK_EQ(report, grid.block().size() * grid.blocks(), grid.size());
    BEELINE_DEVICE_CHECK_EQ(report, grid.block_rank() * grid.block().size() + grid.block().thread_rank(),
                            grid.thread_rank());
    for (std::uint32_t round = 1; round <= a.rounds; ++round) {
      std::uint32_t* cells = a.cells + (round & 1) * grid.blocks();
      if (grid.block().thread_rank() == grid.block().size() - 1) cells[grid.block_rank()] = round;
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, grid.sync(ctx));
      for (unsigned block = grid.block().thread_rank(); block < grid.blocks(); block += grid.block().size())
        BEELINE_DEVICE_CHECK_EQ(report, round, cells[block]);
    }
  }
};

struct SoloGridKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid&, const Context& ctx, DeviceReport*, std::uint32_t* counter) const {
    atomic_add(ctx, counter, 1, ctx.rank);
  }
};

BEELINE_CASE(barrier, grid_of_several_blocks, 1) {
  World& world = test.world();
  const unsigned shared = resident_blocks<GridKernel, DeviceReport*, GridArguments>(world, 96);
  constexpr unsigned most_blocks = 16'384;
  const SymmetricArray<std::uint32_t> cells(world, 2 * most_blocks);
  for (const unsigned blocks : {1u, 2u, std::min(shared, test.on_gpu() ? most_blocks : 5u)}) {
    const std::vector<std::uint32_t> none(2 * blocks);
    world.copy(cells.data(), none.data(), none.size() * sizeof none[0]);
    test.run(test.shape(blocks, true), GridKernel{}, GridArguments{cells.data(), under_thread_sanitizer ? 10u : 100u},
             join("grid of ", blocks, " blocks"));
  }
  const SymmetricArray<std::uint32_t> counter(world, 1);
  const LaunchOptions many = test.shape(300, false);
  test.run(many, SoloGridKernel{}, counter.data(), "a grid that may not wait");
  BEELINE_CHECK_EQ(300 * test.block_threads(), test.read_value(counter.data()));
}

struct AddressArguments {
  std::uint64_t *words, *pinned;  ///< [ranks] symmetric; the second where loads and stores cannot reach the first
  const void* outside;
};

struct AddressKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, AddressArguments a) const {
    if (grid.thread_rank() != 0) return;
    BEELINE_DEVICE_CHECK_EQ(report, no_peer, ctx.owner_of(a.outside));
    BEELINE_DEVICE_CHECK_EQ(report, no_peer, ctx.owner_of(nullptr));
    BEELINE_DEVICE_CHECK_EQ(report, no_peer, ctx.owner_of(ctx.range - 1));
    for (std::uint32_t peer = 0; peer < ctx.size; ++peer) {
      if (ctx.access_to(peer).access != PeerAccess::direct) continue;
      std::uint64_t* there = ctx.at(has_loads_and_stores(ctx, a.words, peer) ? a.words : a.pinned, peer) + ctx.rank;
      BEELINE_DEVICE_CHECK_EQ(report, peer, ctx.owner_of(there));
      BEELINE_DEVICE_CHECK_EQ(report, peer, ctx.world_rank(peer));
      *there = 100 * ctx.rank + peer;  // the address alone suffices to store to a peer
    }
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, barrier(Thread{}, ctx));
    for (std::uint32_t peer = 0; peer < ctx.size; ++peer) {
      if (ctx.access_to(peer).access != PeerAccess::direct) continue;
      const bool reached = detail::may_touch(ctx, ctx.kind_of(peer), Access::load_store, a.words, ctx.rank);
      BEELINE_DEVICE_CHECK_EQ(report, 100 * peer + ctx.rank, (reached ? a.words : a.pinned)[peer]);
    }
  }
};

BEELINE_CASE(barrier, addresses_in_kernels, 1) {
  const SymmetricArray<std::uint64_t> pinned(test.world(), static_cast<std::size_t>(test.size()), Heap::pinned);
  for (const Heap heap : {Heap::symmetric, Heap::pinned}) {
    const SymmetricArray<std::uint64_t> words(test.world(), static_cast<std::size_t>(test.size()), heap);
    test.run(test.shape(1, true), AddressKernel{}, AddressArguments{words.data(), pinned.data(), &test}, "addresses");
  }
}

}  // namespace

}  // namespace beeline_test::barrier_cases
