// SPDX-License-Identifier: Apache-2.0
// Worlds whose ranks reach each other only by engines: commands that kernels and CPU threads post arrive, also more
// than fit a ring. Operations that need loads and stores are refused with the reason.
#include <algorithm>
#include <vector>

#include "tests/conformance/group_kind.hpp"
#include "tests/conformance/rank_test.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::route_cases {

namespace {

using namespace beeline;

struct PostArguments {
  std::uint64_t *sum, *slots, *found;  ///< a word; [threads] at the peer; [threads] on this rank
  std::uint32_t peer, first, posts;
};

/// Every thread posts many commands to several queues, more than fit a ring, and waits for those with an answer.
struct PostKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, PostArguments a) const {
    const std::uint32_t thread = grid.thread_rank();
    const QueueId queue{thread % max_queues};
    for (std::uint32_t i = 1; i <= a.posts; ++i) {
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, atomic_add(ctx, a.sum, i, a.peer));
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                              put_value(ctx, &a.slots[a.first + thread], std::uint64_t{i}, a.peer, queue));
    }
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, flush(Thread{}, ctx, queue));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, quiet(Thread{}, ctx, queue));
    std::uint64_t last = 0;
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                            get(Thread{}, ctx, &a.found[thread], &a.slots[a.first + thread], 1, a.peer));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, atomic_fetch_add(ctx, &a.slots[a.first + thread], 5, a.peer, last));
    BEELINE_DEVICE_CHECK_EQ(report, a.posts, a.found[thread]);
    BEELINE_DEVICE_CHECK_EQ(report, a.posts, last);
  }
};

BEELINE_CASE(route, thousands_of_posts, 2) {
  World& world = test.world();
  constexpr std::uint32_t blocks = 8;
  const std::uint32_t threads = blocks * test.block_threads(), posts = test.on_gpu() ? 20 : 400;
  const SymmetricArray<std::uint64_t> sum(world, 1), slots(world, threads), found(world, threads);
  const auto peer = static_cast<std::uint32_t>(test.ahead(1));
  world.barrier();
  test.run(test.shape(blocks, false), PostKernel{},
           PostArguments{sum.data(), slots.data(), found.data(), peer, 0, posts}, "thousands of posts");
  world.barrier();
  const std::uint64_t each = std::uint64_t{posts} * (posts + 1) / 2;
  BEELINE_CHECK_EQ(each * threads, test.read_value(sum.data()));
  for (std::uint32_t thread = 0; thread < threads; ++thread)
    BEELINE_CHECK_EQ(std::uint64_t{posts} + 5, test.read_value(&slots.data()[thread]));
  world.barrier();
}

/// The host's copies and signals are carried by engines, too.
BEELINE_CASE(route, copies_of_the_host, 2) {
  World& world = test.world();
  const std::size_t bytes = 1 + test.random().below(std::size_t{100'000});
  const SymmetricArray<std::byte> memory(world, bytes, test.any_heap()), second(world, bytes, test.any_heap());
  const SymmetricArray<std::uint64_t> signal(world, 1, Heap::pinned);
  const std::uint64_t key = test.random().next();
  const auto data_of = [&](int rank) { return pattern(key + static_cast<std::uint64_t>(rank), bytes); };
  const int to = test.ahead(1), from = test.behind(1);
  const std::vector<std::byte> mine = data_of(test.rank());
  world.barrier();
  world.copy(memory.at(to), mine.data(), bytes);
  world.barrier();
  check_bytes(data_of(from), test.read(memory.data(), bytes), "put by the host");
  check_bytes(mine, test.read(memory.at(to), bytes), "got by the host");
  world.barrier();
  world.copy(second.at(to), memory.at(from), bytes);  // both ends are others'
  world.barrier();
  check_bytes(data_of(test.behind(3)), test.read(second.data(), bytes), "copied between two others");
  world.barrier();
  const auto later_data_of = [&](int rank) { return pattern(~key - static_cast<std::uint64_t>(rank), bytes); };
  const std::vector<std::byte> later = later_data_of(test.rank());
  world.copy(memory.at(to), later.data(), bytes, world.stream());
  world.stream().write_signal(signal.at(to), key | 1u);
  world.synchronize();
  BEELINE_CHECK(wait(Thread{}, world.host_context(), signal.data(), Compare::equal, key | 1u,
                     static_cast<std::uint32_t>(from)) == Status::ok);
  check_bytes(later_data_of(from), test.read(memory.data(), bytes), "put by a stream");
  world.barrier();
}

/// Objects and calls that need loads and stores are refused.
BEELINE_CASE(route, loads_are_refused, 2) {
  World& world = test.world();
  const SymmetricArray<std::uint64_t> word(world, 1);
  check_error(Status::unreachable, {"Collectives", "a test says so"}, [&] { const Collectives made(world); });
  check_error(Status::unreachable, {"Messages", "a test says so"}, [&] { const Messages made(world); });
  check_error(Status::unreachable, {"StagedChannel", "a test says so"},
              [&] { const StagedChannel made(world, 1024, 2); });
  check_error(Status::unreachable, {"packets", "a test says so"}, [&] { const PacketRings made(world, 64, 4); });
  world.barrier();
  const bool in_pair = test.rank() < 2;
  const auto pair = world.make_team(in_pair ? std::vector<int>{0, 1} : std::vector<int>{});
  if (in_pair) {
    const auto other = static_cast<std::uint32_t>(1 - test.rank());
    BEELINE_CHECK(!has_loads_and_stores(pair->context(), word.data(), other));
    BEELINE_CHECK(has_atomics(pair->context(), word.data(), other));
    if (!test.on_gpu())
      check_error(Status::unreachable, {"an engine does"},
                  [&] { static_cast<void>(pair->host_context().at(word.data(), other)); });
  }
  BEELINE_CHECK(!world.failed());
  world.barrier();
}

}  // namespace

}  // namespace beeline_test::route_cases
