// SPDX-License-Identifier: Apache-2.0
// Worlds whose ranks are on several nodes: operations that need no call at the target, ordering across nodes, and
// operations that are refused with a reason.
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/conformance/group_kind.hpp"
#include "tests/conformance/rank_test.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::network_cases {

namespace {

using namespace beeline;
using namespace std::chrono_literals;

/// A rank on another node: nodes hold consecutive ranks, so the last rank is on another node than rank 0.
std::uint32_t farthest(const RankTest& test) {
  return static_cast<std::uint32_t>(test.rank() == 0 ? test.size() - 1 : 0);
}

/// The target sleeps in code of its own and makes no call of the library.
BEELINE_CASE(network, a_target_that_sleeps, 2) {
  World& world = test.world();
  constexpr std::size_t count = 100'000;
  const SymmetricArray<std::uint64_t> data(world, count);
  const SymmetricArray<std::uint64_t> sum(world, 1), done(world, 1);
  const std::vector<std::uint64_t> mine(count, test.random().next());
  const Context& ctx = world.host_context();
  world.barrier();
  if (test.rank() == 0) {
    const std::uint32_t peer = farthest(test);
    const auto start = std::chrono::steady_clock::now();
    BEELINE_CHECK(put(Thread{}, ctx, data.data(), mine.data(), count, peer) == Status::ok);
    BEELINE_CHECK(quiet(Thread{}, ctx) == Status::ok);
    std::uint64_t before = 1;
    BEELINE_CHECK(atomic_fetch_add(ctx, sum.data(), 42, peer, before) == Status::ok);
    BEELINE_CHECK_EQ(0u, before);
    std::vector<std::uint64_t> back(count);
    BEELINE_CHECK(get(Thread{}, ctx, back.data(), data.data(), count, peer) == Status::ok);
    BEELINE_CHECK(back == mine);
    BEELINE_CHECK(std::chrono::steady_clock::now() - start < 1s);
    BEELINE_CHECK(signal(Thread{}, ctx, done.data(), 1, peer) == Status::ok);
    BEELINE_CHECK(quiet(Thread{}, ctx) == Status::ok);
  } else if (test.rank() == test.size() - 1) {
    std::this_thread::sleep_for(1500ms);
    BEELINE_CHECK(wait(Thread{}, ctx, done.data(), Compare::equal, 1, 0, Timeout::test()) == Status::ok);
    BEELINE_CHECK_EQ(42u, sum.data()[0]);
    BEELINE_CHECK(std::vector<std::uint64_t>(data.data(), data.data() + count) == mine);
  }
  world.barrier();
}

/// A CPU and ranks on other nodes update the same word by atomics.
BEELINE_CASE(network, atomics_of_both_sides, 2) {
  World& world = test.world();
  constexpr std::uint64_t rounds = 2'000;
  const SymmetricArray<std::uint64_t> sum(world, 1);
  world.barrier();
  for (std::uint64_t i = 0; i < rounds; ++i)
    BEELINE_CHECK(atomic_add(world.host_context(), sum.data(), 1, 0) == Status::ok);
  world.barrier();
  if (test.rank() == 0) BEELINE_CHECK_EQ(rounds * static_cast<std::uint64_t>(test.size()), sum.data()[0]);
  world.barrier();
}

/// Large and small messages of one queue take effect in the queue's order, whichever protocol carries each of them.
BEELINE_CASE(network, the_order_of_a_queue, 2) {
  World& world = test.world();
  constexpr std::size_t most = std::size_t{1} << 20;
  const SymmetricArray<std::uint64_t> data(world, most / sizeof(std::uint64_t)), arrived(world, 1);
  const Context& ctx = world.host_context();
  const auto to = static_cast<std::uint32_t>(test.ahead(1)), from = static_cast<std::uint32_t>(test.behind(1));
  for (std::uint64_t round = 1; round <= 60; ++round) {
    const std::size_t count =
        round % 3 == 0 ? most / sizeof(std::uint64_t) : 1 + test.random().below(std::size_t{4000});
    const std::vector<std::uint64_t> old(count, round), fresh(count, round + 1'000);
    world.barrier();
    put(Thread{}, ctx, data.data(), old.data(), count, to);
    put(Thread{}, ctx, data.data(), fresh.data(), count / 2 + 1, to);
    signal(Thread{}, ctx, arrived.data(), round, to);
    BEELINE_CHECK(wait(Thread{}, ctx, arrived.data(), Compare::equal, round, from) == Status::ok);
    BEELINE_CHECK_EQ(round + 1'000, data.data()[count / 2]);
    if (count > 2) BEELINE_CHECK_EQ(round, data.data()[count - 1]);
    BEELINE_CHECK(quiet(Thread{}, ctx) == Status::ok);
  }
  world.barrier();
}

/// Sends more signals than a ring of commands holds to targets that send nothing back: they acknowledge completion.
BEELINE_CASE(network, signals_that_nobody_answers, 2) {
  World& world = test.world();
  constexpr std::uint64_t rounds = 2 * command_ring_depth;
  const SymmetricArray<std::uint64_t> data(world, 1), arrived(world, 1);
  const Context& ctx = world.host_context();
  world.barrier();
  if (test.rank() == 0) {
    for (std::uint64_t round = 1; round <= rounds; ++round)
      for (std::uint32_t peer = 1; peer < ctx.size; ++peer)
        BEELINE_CHECK(put_signal(Thread{}, ctx, data.data(), &round, 1, arrived.data(), round, peer) == Status::ok);
    BEELINE_CHECK(quiet(Thread{}, ctx) == Status::ok);
    for (std::uint32_t peer = 1; peer < ctx.size; ++peer) {
      std::uint64_t there = 0;
      BEELINE_CHECK(get(Thread{}, ctx, &there, data.data(), 1, peer) == Status::ok);
      BEELINE_CHECK_EQ(rounds, there);
    }
  } else {
    BEELINE_CHECK(wait(Thread{}, ctx, arrived.data(), Compare::equal, rounds) == Status::ok);
    BEELINE_CHECK_EQ(rounds, data.data()[0]);
  }
  world.barrier();
}

/// Every member sees after a barrier all that others did before it, by any queue; in the world and in teams.
void check_barrier(RankTest& test, Team& team) {
  const SymmetricArray<std::uint64_t> slots(team, static_cast<std::size_t>(team.size()));
  const Context& ctx = team.host_context();
  for (std::uint64_t round = 1; round <= 50; ++round) {
    for (std::uint32_t peer = 0; peer < ctx.size; ++peer)
      put_value(ctx, slots.data() + ctx.rank, round, peer,
                QueueId{static_cast<std::uint32_t>(round + peer) % max_queues});
    team.barrier();
    for (std::uint32_t peer = 0; peer < ctx.size; ++peer) BEELINE_CHECK_EQ(round, slots.data()[peer]);
    team.barrier();
  }
  std::uint64_t mine = static_cast<std::uint64_t>(test.rank()) + 7;
  const auto all = team.allgather(std::as_bytes(std::span(&mine, 1)));
  for (int member = 0; member < team.size(); ++member) {
    std::uint64_t theirs = 0;
    std::memcpy(&theirs, all[static_cast<std::size_t>(member)].data(), sizeof theirs);
    BEELINE_CHECK_EQ(static_cast<std::uint64_t>(team.world_rank(member)) + 7, theirs);
  }
  std::int64_t sum = 0;
  for (int member = 0; member < team.size(); ++member) sum += team.world_rank(member);
  BEELINE_CHECK_EQ(sum, team.allreduce(std::int64_t{test.rank()}, Reduction::sum));
}

BEELINE_CASE(network, barriers_across_nodes, 2) {
  check_barrier(test, test.world());
  const auto every_other = test.world().make_team(test.alternate_ranks());
  check_barrier(test, *every_other);
}

BEELINE_CASE(network, a_barrier_with_a_time_limit, 2) {
  World& world = test.world();
  const SymmetricArray<std::uint64_t> go(world, 1);
  world.barrier();
  const auto team = world.make_team([&] {
    std::vector<int> all;
    for (int each = 0; each < test.size(); ++each) all.push_back(each);
    return all;
  }());
  if (test.rank() == 0) {
    Status status = team->barrier(Timeout{20'000'000});
    BEELINE_CHECK(status == Status::timeout);
    for (std::uint32_t peer = 1; peer < static_cast<std::uint32_t>(test.size()); ++peer)
      signal(Thread{}, world.host_context(), go.data(), 1, peer);
    while (status == Status::timeout) status = team->barrier(Timeout{1'000'000});
    BEELINE_CHECK(status == Status::ok);
  } else {
    BEELINE_CHECK(wait(Thread{}, world.host_context(), go.data(), Compare::equal, 1, 0) == Status::ok);
    team->barrier();
  }
  team->barrier();
}

/// The next array reuses freed memory: no earlier operation in flight changes it.
BEELINE_CASE(network, memory_comes_and_goes, 2) {
  World& world = test.world();
  const auto peer = static_cast<std::uint32_t>(test.ahead(1));
  for (std::uint64_t round = 0; round < 20; ++round) {
    const std::size_t count = 1 + test.random().below(std::size_t{50'000});
    const SymmetricArray<std::uint64_t> array(world, count, test.any_heap());
    const std::vector<std::uint64_t> mine(count, round << 32 | static_cast<std::uint64_t>(test.rank()));
    world.barrier();
    put(Thread{}, world.host_context(), array.data(), mine.data(), count, peer);
    world.barrier();
    BEELINE_CHECK_EQ(round << 32 | static_cast<std::uint64_t>(test.behind(1)), array.data()[count - 1]);
  }
  const Segment& segment = world.create_segment(MemoryKind::host, 4096);
  const SegmentPart& theirs = segment.parts[peer];
  const std::uint64_t value = static_cast<std::uint64_t>(test.rank()) + 1;
  world.copy(theirs.address, &value, sizeof value);
  world.barrier();
  std::uint64_t found = 0;
  world.copy(&found, segment.parts[static_cast<std::size_t>(test.rank())].address, sizeof found);
  BEELINE_CHECK_EQ(static_cast<std::uint64_t>(test.behind(1)) + 1, found);
  world.barrier();
  world.destroy_segment(segment.id);
}

/// Every other rank has a part, and the parts differ in size; all ranks use all parts.
BEELINE_CASE(network, segments_of_which_some_ranks_have_a_part, 2) {
  World& world = test.world();
  const Context& ctx = world.host_context();
  check_error(Status::invalid_argument, {"in no rank's heap"},
              [&] { static_cast<void>(world.symmetric_address(&test)); });
  for (int first = 0; first < 2; ++first) {
    const std::size_t mine = test.rank() % 2 == first ? 1000 + 5000 * static_cast<std::size_t>(test.rank()) : 0;
    const Segment& uneven = world.create_segment(MemoryKind::host, test.rank() == 0 ? 100 : 0);
    const Segment& segment = world.create_segment(MemoryKind::host, mine * sizeof(std::uint64_t));
    for (std::uint32_t peer = 0; peer < ctx.size; ++peer) {
      const SegmentPart& part = segment.parts[peer];
      if (part.bytes == 0) continue;
      auto* const there = static_cast<std::uint64_t*>(world.symmetric_address(part.address));
      const std::size_t share = part.bytes / sizeof(std::uint64_t) / ctx.size, at = share * ctx.rank;
      const std::vector<std::uint64_t> data(share, 10 * peer + ctx.rank);
      std::vector<std::uint64_t> put_here(share), copied(share);
      BEELINE_CHECK(put(Thread{}, ctx, there + at, data.data(), share, peer) == Status::ok);
      BEELINE_CHECK(get(Thread{}, ctx, put_here.data(), there + at, share, peer) == Status::ok);
      BEELINE_CHECK(put_here == data);
      world.copy(copied.data(), part.address + at * sizeof(std::uint64_t), share * sizeof(std::uint64_t));
      BEELINE_CHECK(copied == data);
    }
    BEELINE_CHECK(quiet(Thread{}, ctx) == Status::ok);
    world.barrier();
    for (std::uint32_t peer = 0; mine != 0 && peer < ctx.size; ++peer)
      BEELINE_CHECK_EQ(
          10 * ctx.rank + peer,
          test.read_value(reinterpret_cast<std::uint64_t*>(segment.parts[ctx.rank].address) + mine / ctx.size * peer));
    world.barrier();
    world.destroy_segment(segment.id);
    world.destroy_segment(uneven.id);
  }
}

/// Each rank has a share of each chunk that belongs to ranks on other nodes.
BEELINE_CASE(network, ranges_of_an_array, 2) {
  World& world = test.world();
  const Context& ctx = world.host_context();
  const DistributedArray<std::uint64_t> array(world, 40'000, {.chunk_elements = 3000, .kind = MemoryKind::host});
  const auto value = [](std::uint32_t from, std::uint32_t to) { return 100 * from + to; };
  for (std::uint32_t peer = 0; peer < ctx.size; ++peer) {
    if (ctx.access_to(peer).access != PeerAccess::engine) continue;
    for (const ElementRange& range : array.elements_of(static_cast<int>(peer))) {
      const std::size_t share = (range.last - range.first) / ctx.size, at = share * ctx.rank;
      const std::vector<std::uint64_t> mine(share, value(ctx.rank, peer));
      std::vector<std::uint64_t> back(share);
      auto* const there = static_cast<std::uint64_t*>(world.symmetric_address(array.data() + range.first));
      BEELINE_CHECK(put(Thread{}, ctx, there + at, mine.data(), share, peer) == Status::ok);
      BEELINE_CHECK(get(Thread{}, ctx, back.data(), there + at, share, peer) == Status::ok);
      BEELINE_CHECK(back == mine);
    }
  }
  BEELINE_CHECK(quiet(Thread{}, ctx) == Status::ok);
  world.barrier();
  for (const ElementRange& range : array.elements_of(test.rank()))
    for (std::uint32_t peer = 0; peer < ctx.size; ++peer) {
      const std::size_t share = (range.last - range.first) / ctx.size;
      const bool is_elsewhere = ctx.access_to(peer).access == PeerAccess::engine;
      if (share > 0) BEELINE_CHECK_EQ(is_elsewhere ? value(peer, ctx.rank) : 0u, array[range.first + share * peer]);
    }
  world.barrier();
}

/// Ranks put to, get from, signal and add to memory that a rank of another node has registered.
BEELINE_CASE(network, registered_memory_by_its_alias, 2) {
  World& world = test.world();
  const Context& ctx = world.host_context();
  const std::size_t row = 1 + test.random().below(std::size_t{20'000}), signals = row * ctx.size;
  std::vector<std::uint64_t> memory(signals + ctx.size + 1);
  const RegisteredMemory registered = world.register_memory(memory.data(), memory.size() * sizeof(std::uint64_t));
  auto* const alias = reinterpret_cast<std::uint64_t*>(registered.alias);
  CommandQueues queues(world, 1);
  const CommandQueue queue = queues.channel().queue(0);
  std::vector<std::uint32_t> others;
  for (std::uint32_t peer = 0; peer < ctx.size; ++peer) {
    const RegisteredPart& part = registered.parts[peer];
    const bool is_elsewhere = ctx.access_to(peer).access == PeerAccess::engine;
    BEELINE_CHECK(part.copies);
    BEELINE_CHECK(!is_elsewhere ||
                  (part.address == nullptr && part.not_directly.find("another node") != std::string::npos));
    if (is_elsewhere) others.push_back(peer);
  }
  for (std::uint64_t round = 1; round <= 10; ++round) {
    const std::vector<std::uint64_t> mine(row, round << 32 | ctx.rank);
    for (const std::uint32_t peer : others) {
      std::uint64_t *const to = alias + ctx.rank * row, *const signal = alias + signals + ctx.rank;
      BEELINE_CHECK(Status::ok ==
                    (round % 2 == 0 ? post_put_signal(Thread{}, ctx, to, mine.data(), row, signal, round, peer, queue)
                                    : put_signal(Thread{}, ctx, to, mine.data(), row, signal, round, peer)));
      BEELINE_CHECK(atomic_add(ctx, alias + signals + ctx.size, 1, peer) == Status::ok);
    }
    for (const std::uint32_t peer : others) {
      BEELINE_CHECK(wait(Thread{}, ctx, memory.data() + signals + peer, Compare::equal, round, peer) == Status::ok);
      BEELINE_CHECK(std::vector<std::uint64_t>(memory.begin() + static_cast<std::ptrdiff_t>(peer * row),
                                               memory.begin() + static_cast<std::ptrdiff_t>((peer + 1) * row)) ==
                    std::vector<std::uint64_t>(row, round << 32 | peer));
    }
    BEELINE_CHECK(quiet(Thread{}, ctx) == Status::ok);
    BEELINE_CHECK(quiet(Thread{}, ctx, queue) == Status::ok);
    world.barrier();
    BEELINE_CHECK_EQ(round * others.size(), memory.back());
    std::vector<std::uint64_t> back(row);
    for (const std::uint32_t peer : others) {
      BEELINE_CHECK(get(Thread{}, ctx, back.data(), alias + ctx.rank * row, row, peer) == Status::ok);
      BEELINE_CHECK(back == mine);
    }
    world.barrier();
  }
  world.deregister_memory(registered.id);
}

/// The values that each rank's kernel, or its CPU thread, puts to every other rank have arrived after the barrier on
/// the streams.
struct TellAllKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report,
                                      std::uint64_t* board) const {
    if (grid.thread_rank() != 0) return;
    for (std::uint32_t peer = 0; peer < ctx.size; ++peer)
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, put_value(ctx, board + ctx.rank, load_value(board + ctx.size), peer));
  }
};

BEELINE_CASE(collectives, barriers_on_streams_follow_puts, 2) {
  World& world = test.world();
  Collectives collectives(world);
  const SymmetricArray<std::uint64_t> board(world, static_cast<std::size_t>(test.size()) + 1, test.common_heap());
  const Algorithm named = test.on_several_nodes() ? Algorithm::across_nodes : Algorithm::alltoall;
  for (std::uint64_t round = 1; round <= 20; ++round) {
    world.copy(board.data() + test.size(), &round, sizeof round);
    if (round % 2 == 0 || test.on_gpu() || world.mixed())
      test.run(test.shape(1, false), TellAllKernel{}, board.data(), "put to all");
    else
      for (std::uint32_t peer = 0; peer < world.host_context().size; ++peer)
        BEELINE_CHECK(put_value(world.host_context(), board.data() + test.rank(), round, peer) == Status::ok);
    collectives.barrier();
    for (int peer = 0; peer < test.size(); ++peer) BEELINE_CHECK_EQ(round, test.read_value(board.data() + peer));
    collectives.barrier({.algorithm = named});  // no rank puts while another still reads
  }
}

/// Operations that need memory shared by all members are refused.
BEELINE_CASE(network, what_needs_one_node_is_refused, 2) {
  World& world = test.world();
  const char* const node = "on node 0";
  const DistributedArray<int> array(world, 100'000);
  check_error(Status::unreachable, {"distributed array", "loads and stores do not reach", node},
              [&] { static_cast<void>(array.view()); });
  const SymmetricArray<std::uint64_t> word(world, 1);
  const bool in_pair = test.rank() == 0 || test.rank() == test.size() - 1;
  const auto pair = world.make_team(in_pair ? std::vector<int>{0, test.size() - 1} : std::vector<int>{});
  if (in_pair) {
    const auto other = static_cast<std::uint32_t>(test.rank() == 0 ? 1 : 0);
    BEELINE_CHECK(!has_loads_and_stores(pair->context(), word.data(), other));
    BEELINE_CHECK(has_atomics(pair->context(), word.data(), other));
    check_error(Status::unreachable, {"an engine does"},
                [&] { static_cast<void>(pair->host_context().at(word.data(), other)); });
  }
  BEELINE_CHECK(!world.failed());
  world.barrier();
}

}  // namespace

}  // namespace beeline_test::network_cases
