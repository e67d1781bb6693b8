// SPDX-License-Identifier: Apache-2.0
// Every cell of the access matrix, between all pairs of ranks of one kind or both. Accesses that it lacks are refused.
#include <algorithm>
#include <memory>

#include "tests/conformance/group_kind.hpp"
#include "tests/conformance/rank_test.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::access_cases {

namespace {

using namespace beeline;

/// Word `i` that rank `from` writes for rank `to`.
BEELINE_HOST_DEVICE inline std::uint64_t pair_word(std::uint32_t from, std::uint32_t to, std::uint64_t i) {
  return (std::uint64_t{from + 1} << 48) + (std::uint64_t{to + 1} << 32) + i;
}

/// Whether code of the team's member `from` may access `target`, an address of this rank, in this way.
BEELINE_HOST_DEVICE inline bool may_touch_mine(const Context& ctx, std::uint32_t from, Access access,
                                               const void* target) {
  return detail::may_touch(ctx, ctx.kind_of(from), access, target, ctx.rank);
}

struct PairArguments {
  std::uint64_t *heap, *pinned;  ///< [ranks, words] by sender at the receiver; by reader at the source of a get
  std::uint64_t* own;            ///< [ranks, words] by peer: what this rank puts, or where it gets to
  std::uint64_t* seen;           ///< [ranks, words] by peer
  std::uint64_t* signals;        ///< [ranks] by sender
  std::uint64_t round;
  std::uint32_t words;
};

/// Puts into the heap where the matrix allows it, and into pinned memory otherwise. A signal follows, and the
/// receiver's kernel reads the data that it announces.
struct PairPutKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, PairArguments a) const {
    const auto& block = grid.block();
    for (std::uint32_t peer = 0; peer < ctx.size; ++peer) {
      std::uint64_t* to = has_loads_and_stores(ctx, a.heap, peer) ? a.heap : a.pinned;
      for (std::uint32_t i = block.thread_rank(); i < a.words; i += block.size())
        a.own[peer * a.words + i] = pair_word(ctx.rank, peer, a.round + i);
      block.sync();
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                              put_signal(block, ctx, to + ctx.rank * a.words, a.own + peer * a.words, a.words,
                                         &a.signals[ctx.rank], a.round, peer));
    }
    for (std::uint32_t peer = 0; peer < ctx.size; ++peer) {
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(block, ctx, &a.signals[peer], Compare::equal, a.round, peer));
      const std::uint64_t* from = may_touch_mine(ctx, peer, Access::load_store, a.heap) ? a.heap : a.pinned;
      for (std::uint32_t i = block.thread_rank(); i < a.words; i += block.size())
        BEELINE_DEVICE_CHECK_EQ(report, pair_word(peer, ctx.rank, a.round + i), from[peer * a.words + i]);
    }
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, barrier(block, ctx));
  }
};

struct PairGetKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, PairArguments a) const {
    const auto& block = grid.block();
    for (std::uint32_t peer = 0; peer < ctx.size; ++peer)
      for (std::uint32_t i = block.thread_rank(); i < a.words; i += block.size())
        a.heap[peer * a.words + i] = a.pinned[peer * a.words + i] = pair_word(ctx.rank, peer, a.round + i);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, barrier(block, ctx));
    for (std::uint32_t peer = 0; peer < ctx.size; ++peer) {
      const std::uint64_t* from = has_loads_and_stores(ctx, a.heap, peer) ? a.heap : a.pinned;
      for (const std::uint64_t* source : {from, static_cast<const std::uint64_t*>(a.pinned)}) {
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                                get(block, ctx, a.own + peer * a.words, source + ctx.rank * a.words, a.words, peer));
        block.sync();
        for (std::uint32_t i = block.thread_rank(); i < a.words; i += block.size())
          BEELINE_DEVICE_CHECK_EQ(report, pair_word(peer, ctx.rank, a.round + i), a.own[peer * a.words + i]);
        block.sync();
      }
    }
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, barrier(block, ctx));
  }
};

template <class Kernel>
void between_all_pairs(RankTest& test, std::string_view what) {
  World& world = test.world();
  const auto ranks = static_cast<std::size_t>(test.size());
  for (const std::uint32_t words : {1u, 2u, 37u, 4096u}) {
    const SymmetricArray<std::uint64_t> heap(world, ranks * words), own(world, ranks * words);
    const SymmetricArray<std::uint64_t> pinned(world, ranks * words, Heap::pinned);
    const Signals signals(world, ranks);
    for (std::uint64_t round = 1; round <= 4; ++round)
      test.run(test.shape(1, true), Kernel{},
               PairArguments{heap.data(), pinned.data(), own.data(), nullptr, signals.data(), round, words},
               join(what, " of ", words, " words"));
  }
}

BEELINE_CASE(access, put_between_all_pairs, 2) { between_all_pairs<PairPutKernel>(test, "puts"); }
BEELINE_CASE(access, get_between_all_pairs, 2) { between_all_pairs<PairGetKernel>(test, "gets"); }

struct RingArguments {
  std::uint64_t* data;  ///< [words] pinned
  std::uint64_t *arrived, *credit;
  std::uint32_t words, rounds;
};

/// Writes the same memory in each round: a receiver that sees a signal sees that round's data, and no later round's.
struct RingKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, RingArguments a) const {
    const auto& block = grid.block();
    const std::uint32_t to = (ctx.rank + 1) % ctx.size, from = (ctx.rank + ctx.size - 1) % ctx.size;
    for (std::uint64_t round = 1; round <= a.rounds; ++round) {
      for (std::uint32_t i = block.thread_rank(); i < a.words; i += block.size())
        put_value(ctx, &a.data[i], pair_word(ctx.rank, to, round), to);
      signal(block, ctx, a.arrived, round, to);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(block, ctx, a.arrived, Compare::equal, round, from));
      for (std::uint32_t i = block.thread_rank(); i < a.words; i += block.size())
        BEELINE_DEVICE_CHECK_EQ(report, pair_word(from, ctx.rank, round), a.data[i]);
      signal(block, ctx, a.credit, round, from);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(block, ctx, a.credit, Compare::equal, round, to));
    }
  }
};

BEELINE_CASE(access, signals_order_data_around_a_ring, 2) {
  World& world = test.world();
  const SymmetricArray<std::uint64_t> data(world, 256, Heap::pinned);
  const Signals signals(world, 2);
  test.run(test.shape(1, true), RingKernel{}, RingArguments{data.data(), signals.data(), signals.data() + 1, 256, 300},
           "rounds");
}

struct WholeArguments {
  std::uint64_t *heap, *pinned;  ///< one word each, written by the rank behind
  std::uint64_t last;
};

/// Two equal halves: a reader that finds them different has seen half a store.
BEELINE_HOST_DEVICE inline std::uint64_t halves(std::uint64_t n) { return n << 32 | n; }

/// One thread stores values as fast as it can; another reads the values that the rank behind stores.
struct WholeKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, WholeArguments a) const {
    if (grid.block().thread_rank() != 0) return;
    const std::uint32_t to = (ctx.rank + 1) % ctx.size, from = (ctx.rank + ctx.size - 1) % ctx.size;
    if (grid.block_rank() == 0) {
      std::uint64_t* word = has_loads_and_stores(ctx, a.heap, to) ? a.heap : a.pinned;
      for (std::uint64_t n = 1; n <= a.last; ++n) put_value(ctx, word, halves(n), to);
      return;
    }
    const std::uint64_t* word = may_touch_mine(ctx, from, Access::load_store, a.heap) ? a.heap : a.pinned;
    const Awaited awaited{Operation::wait, from, 0, halves(a.last)};
    std::uint64_t before = 0, torn = 0;
    const Status status = poll_until(ctx, awaited, Timeout::none(), [&](std::uint64_t& observed) {
      observed = detail::load_signal(word, Order::relaxed);
      if (observed >> 32 != (observed & 0xffffffffu) || observed < before) ++torn;
      before = observed;
      return observed == halves(a.last);
    });
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
    BEELINE_DEVICE_CHECK_EQ(report, 0, torn);
  }
};

BEELINE_CASE(access, stores_of_eight_bytes_are_whole, 2) {
  const SymmetricArray<std::uint64_t> heap(test.world(), 1), pinned(test.world(), 1, Heap::pinned);
  test.run(test.shape(2, true), WholeKernel{}, WholeArguments{heap.data(), pinned.data(), 200'000}, "whole stores");
}

struct PacketArguments {
  PacketChannel channel;
  std::uint64_t *out, *in;  ///< [words]
  std::uint32_t words, rounds;
};

struct PairPacketKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, PacketArguments a) const {
    const auto& block = grid.block();
    for (std::uint32_t round = 1; round <= a.rounds; ++round) {
      const std::uint32_t words = 1 + round % a.words;  // up to several slots
      for (std::uint32_t distance = 1; distance < ctx.size; ++distance) {
        const std::uint32_t to = (ctx.rank + distance) % ctx.size, from = (ctx.rank + ctx.size - distance) % ctx.size;
        for (std::uint32_t i = block.thread_rank(); i < words; i += block.size())
          a.out[i] = pair_word(ctx.rank, to, round + i);
        block.sync();
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                                PacketPort(block, ctx, a.channel, to).send(a.out, words * sizeof *a.out));
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                                PacketPort(block, ctx, a.channel, from).receive(a.in, words * sizeof *a.in));
        for (std::uint32_t i = block.thread_rank(); i < words; i += block.size())
          BEELINE_DEVICE_CHECK_EQ(report, pair_word(from, ctx.rank, round + i), a.in[i]);
        block.sync();
      }
    }
  }
};

BEELINE_CASE(access, packets_between_all_pairs, 2) {
  World& world = test.world();
  constexpr std::uint32_t words = 20;
  const SymmetricArray<std::uint64_t> out(world, words), in(world, words);
  const PacketRings rings(world, 64, 8);
  BEELINE_CHECK_EQ(test.rank(), world.owner_of(rings.channel().rings));
  for (int i = 0; i < 2; ++i)  // the second launch continues the first one's packets
    test.run(test.shape(1, true), PairPacketKernel{},
             PacketArguments{rings.channel(), out.data(), in.data(), words, 150}, "packets");
}

struct BoardArguments {
  std::uint64_t* board;  ///< [2, max_ranks] pinned
  std::uint32_t rounds;
  Order order;
};

struct BarrierKernel {
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, DeviceReport* report,
                                      BoardArguments a) const {
    Barrier barrier(group, ctx);
    for (std::uint64_t round = 1; round <= a.rounds; ++round) {
      std::uint64_t* board = a.board + (round & 1) * max_ranks;
      for (std::uint32_t peer = group.thread_rank(); peer < ctx.size; peer += group.size())
        put_value(ctx, &board[ctx.rank], round, peer);
      if (a.order == Order::relaxed) static_cast<void>(quiet(group, ctx));
      if (round % 16 == 0) {  // a call that timed out is repeated and continues
        Status status = Status::timeout;
        while (status == Status::timeout) status = barrier.sync(a.order, Timeout{20'000});
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
      } else {
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok, barrier.sync(a.order));
      }
      if (a.order == Order::relaxed) fence();
      for (std::uint32_t peer = 0; peer < ctx.size; ++peer)
        BEELINE_DEVICE_CHECK_EQ(report, round, detail::load_signal(&board[peer], Order::relaxed));
    }
  }
};

template <GroupKind kind>
void barrier_of_all_by(RankTest& test) {
  for (const Order order : {Order::memory, Order::relaxed}) {
    const SymmetricArray<std::uint64_t> board(test.world(), 2 * max_ranks, Heap::pinned);
    test.run(test.shape(1, true), FirstGroup<kind, BarrierKernel>{}, BoardArguments{board.data(), 300, order},
             join(name(kind), " barriers"));
  }
}

BEELINE_CASE(access, barrier_of_all, 2) {
  barrier_of_all_by<GroupKind::thread>(test);
  barrier_of_all_by<GroupKind::block>(test);
  World& world = test.world();
  const SymmetricArray<std::uint64_t> board(world, static_cast<std::size_t>(test.size()), Heap::pinned);
  for (std::uint64_t round = 1; round <= 50; ++round) {  // CPU threads' own
    for (int peer = 0; peer < test.size(); ++peer) board.at(peer)[test.rank()] = round;
    world.barrier();
    for (int peer = 0; peer < test.size(); ++peer) BEELINE_CHECK_EQ(round, board.data()[peer]);
    world.barrier();
  }
}

/// Each rank in turn copies between the heaps of every two other ranks.
BEELINE_CASE(access, copies_between_other_ranks, 2) {
  World& world = test.world();
  constexpr std::size_t bytes = 70'001;
  const auto ranks = static_cast<std::size_t>(test.size());
  const SymmetricArray<std::byte> source(world, bytes), destination(world, ranks * bytes);
  const std::uint64_t key = test.random().next();
  const auto data_of = [&](int rank) { return pattern(key + static_cast<std::uint64_t>(rank), bytes); };
  test.write(source.data(), data_of(test.rank()));
  for (int copier = 0; copier < test.size(); ++copier) {
    world.barrier();
    if (copier == test.rank()) {
      for (int to = 0; to < test.size(); ++to)
        for (int from = 0; from < test.size(); ++from) {
          std::byte* place = destination.at(to) + static_cast<std::size_t>(from) * bytes;
          if ((to + from) % 2 == 0)
            world.copy(place, source.at(from), bytes);
          else
            world.copy(place, source.at(from), bytes, world.stream());
        }
      world.synchronize();
    }
    world.barrier();
    for (int from = 0; from < test.size(); ++from) {
      std::byte* place = destination.data() + static_cast<std::size_t>(from) * bytes;
      check_bytes(data_of(from), test.read(place, bytes), join("copied by rank ", copier, " from rank ", from));
      test.write(place, std::vector<std::byte>(bytes));
    }
  }
  world.barrier();
}

BEELINE_CASE(access, kinds_are_known, 2) {
  World& world = test.world();
  bool differ = false;
  for (int rank = 0; rank < test.size(); ++rank) {
    const auto peer = static_cast<std::uint32_t>(rank);
    BEELINE_CHECK(world.context().kind_of(peer) == world.device(rank).kind);
    BEELINE_CHECK(world.host_context().kind_of(peer) == world.device(rank).kind);
    differ = differ || world.device(rank).kind != world.device(0).kind;
  }
  BEELINE_CHECK_EQ(differ, world.mixed());
  BEELINE_CHECK_EQ(differ, world.context().mixed);
}

struct SumArguments {
  std::uint64_t *heap, *pinned;  ///< one counter each
};

/// Adds to both counters of every rank, where that is possible.
struct SumKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport*, SumArguments a) const {
    static_cast<void>(grid);
    for (std::uint32_t peer = 0; peer < ctx.size; ++peer)
      for (std::uint64_t* counter : {a.heap, a.pinned})
        if (has_atomics(ctx, counter, peer)) {
          atomic_add(ctx, counter, 1, peer);
          signal_add(Thread{}, ctx, counter, 1, peer, Order::relaxed);
        }
  }
};

BEELINE_CASE(access, atomics_where_they_are_possible, 2) {
  World& world = test.world();
  const SymmetricArray<std::uint64_t> heap(world, 1), pinned(world, 1, Heap::pinned);
  constexpr unsigned blocks = 2;
  test.run(test.shape(blocks, false), SumKernel{}, SumArguments{heap.data(), pinned.data()}, "sums");
  world.barrier();
  std::uint64_t on_heap = 0, on_pinned = 0;
  for (int rank = 0; rank < test.size(); ++rank) {
    const bool gpu = world.device(rank).is_gpu();
    const unsigned threads = gpu ? test.shape(1, false).threads : static_cast<unsigned>(world.config().host_threads);
    if (test.on_gpu() ? gpu : test.has_host_atomics(rank)) on_heap += 2 * blocks * threads;
    if (test.has_host_atomics(rank)) on_pinned += 2 * blocks * threads;
  }
  BEELINE_CHECK_EQ(on_heap, test.read_value(heap.data()));
  BEELINE_CHECK_EQ(on_pinned, test.read_value(pinned.data()));
  world.barrier();
}

enum Tried : std::uint32_t {
  add_heap,
  signal_add_heap,
  add_pinned,
  signal_add_pinned,
  exchange_pinned,
  put_heap,
  value_heap,
  signal_heap,
  get_heap,
  tried
};

struct RefusedArguments {
  std::uint64_t *heap, *pinned;  ///< a word each
  std::uint64_t* mine;           ///< memory that `get` must leave unchanged
  std::uint32_t* statuses;       ///< [tried]; 99 where no call was made
};

/// Calls that a rank must not make on the peer of its pair.
struct RefusedKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport*, RefusedArguments a) const {
    if (grid.thread_rank() != 0) return;
    const std::uint32_t peer = 1 - ctx.rank;
    const auto keep = [&](Tried what, Status status) { a.statuses[what] = static_cast<std::uint32_t>(status); };
    std::uint64_t held = 0;
    if (ctx.mixed) {
      keep(add_heap, atomic_fetch_add(ctx, a.heap, 1, peer, held));
      keep(signal_add_heap, signal_add(Thread{}, ctx, a.heap, 1, peer));
    }
    if (ctx.kind_of(ctx.rank) == DeviceKind::gpu) {
      keep(add_pinned, atomic_exchange(ctx, a.pinned, 5, peer, held));
      keep(signal_add_pinned, signal_add(Thread{}, ctx, a.pinned, 1, peer));
      keep(exchange_pinned, exchange(ctx, a.pinned, 5, held));
      return;
    }
    keep(put_heap, put(Thread{}, ctx, a.heap, a.mine, 1, peer));
    keep(value_heap, put_value(ctx, a.heap, std::uint64_t{5}, peer));
    keep(signal_heap, signal(Thread{}, ctx, a.heap, 5, peer));
    keep(get_heap, get(Thread{}, ctx, a.mine, a.heap, 1, peer));
  }
};

void try_what_is_refused(RankTest& test, Team& team, const RefusedArguments& arguments, int peer) {
  World& world = test.world();
  const LaunchOptions options = test.shape(1, false);
  const std::string words = join("rank ", test.rank(), ": atomic on rank ", peer,
                                 " in kernel beeline_test::access_cases::RefusedKernel refused");
  check_error(Status::unreachable, {words}, [&] {
    launch(team, options, RefusedKernel{}, static_cast<DeviceReport*>(nullptr), arguments);
    world.synchronize();
  });
  std::uint32_t statuses[tried] = {};
  world.copy(statuses, arguments.statuses, sizeof statuses);
  const auto unreachable = static_cast<std::uint32_t>(Status::unreachable);
  for (std::uint32_t i = 0; i < tried; ++i) {
    const bool on_pinned = i >= add_pinned && i <= exchange_pinned;
    const bool done = on_pinned ? test.on_gpu() : team.context().mixed && (i < add_pinned || !test.on_gpu());
    BEELINE_CHECK_EQ(done ? unreachable : 99u, statuses[i]);
  }
}

/// Checks one pair of ranks, as a team with an abort word of its own.
void refuse_between(RankTest& test, int doer, int peer) {
  World& world = test.world();
  const SymmetricArray<std::uint64_t> heap(world, 1), pinned(world, 1, Heap::pinned), mine(world, 1);
  const SymmetricArray<std::uint32_t> statuses(world, tried);
  const std::uint64_t before = 77;
  const std::vector<std::uint32_t> unset(tried, 99);
  for (std::uint64_t* word : {heap.data(), pinned.data(), mine.data()}) world.copy(word, &before, sizeof before);
  world.copy(statuses.data(), unset.data(), statuses.bytes());
  const bool member = test.rank() == doer || test.rank() == peer;
  const std::unique_ptr<Team> team =
      world.make_team(member ? std::vector<int>{std::min(doer, peer), std::max(doer, peer)} : std::vector<int>{});
  if (test.rank() == doer)
    try_what_is_refused(test, *team, {heap.data(), pinned.data(), mine.data(), statuses.data()}, peer);
  world.barrier();
  if (test.rank() == peer) {
    BEELINE_CHECK(team->failed());
    check_error(Status::aborted, {join("rank ", doer, ": atomic on rank ", peer, " in kernel")},
                [&] { team->barrier(); });
  }
  for (const std::uint64_t* word : {heap.data(), pinned.data(), mine.data()})
    BEELINE_CHECK_EQ(before, test.read_value(word));
  BEELINE_CHECK(!world.failed());
}

BEELINE_CASE(access, what_the_matrix_lacks_is_refused, 2) {
  int pairs = 0;
  for (int doer = 0; doer < test.size(); ++doer)
    for (int peer = 0; peer < test.size(); ++peer) {
      const bool lacks = test.on_gpu(doer) ? !test.has_host_atomics(doer) : test.on_gpu(peer);
      if (doer == peer || !lacks) continue;
      refuse_between(test, doer, peer);
      ++pairs;
    }
  test.skip_if(pairs == 0, "these ranks lack nothing of the matrix");
}

}  // namespace

}  // namespace beeline_test::access_cases
