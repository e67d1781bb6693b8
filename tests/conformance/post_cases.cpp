// SPDX-License-Identifier: Apache-2.0
// Commands that kernels post to queues arrive in the order of their queue, whichever group posts them and however many.
#include <algorithm>
#include <vector>

#include "tests/conformance/group_kind.hpp"
#include "tests/conformance/queue_cases.hpp"
#include "tests/conformance/rank_test.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::post_cases {

namespace {

using namespace beeline;

struct MoveArguments {
  std::byte *destination, *source, *back, *copied;
  std::uint64_t* signal;
  std::size_t bytes;
  std::uint32_t ahead, behind;
  CommandQueuesView channel;
  bool by_one_command;
};

/// Puts to the rank ahead with a signal, waits for the rank behind, gets the put data back, and copies received data.
struct MoveBody {
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, DeviceReport* report,
                                      MoveArguments a) const {
    const CommandQueue queue = a.channel.queue(0);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, send(group, ctx, a));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(group, ctx, a.signal, Compare::greater_equal, 7, a.behind));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, flush(group, ctx, queue));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, quiet(group, ctx, queue));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_get(group, ctx, a.back, a.destination, a.bytes, a.ahead, queue));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, quiet(group, ctx, queue));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_copy(group, ctx, a.copied, a.destination, a.bytes, queue));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, quiet(group, ctx, queue));
  }

 private:
  template <class Group>
  static BEELINE_HOST_DEVICE Status send(const Group& group, const Context& ctx, const MoveArguments& a) {
    const CommandQueue queue = a.channel.queue(0);
    if (a.by_one_command)
      return post_put_signal(group, ctx, a.destination, a.source, a.bytes, a.signal, 7, a.ahead, queue);
    const Status status = post_put(group, ctx, a.destination, a.source, a.bytes, a.ahead, queue);
    return status == Status::ok ? post_signal(group, ctx, a.signal, 7, a.ahead, queue) : status;
  }
};

template <GroupKind kind>
void move_bytes(RankTest& test, CommandQueues& queues, std::size_t bytes, std::size_t skew, bool by_one_command) {
  World& world = test.world();
  const SymmetricArray<std::byte> memory(world, 4 * (bytes + 16));
  const Signals signal(world, 1);
  const auto part = [&](std::size_t index) { return memory.data() + index * (bytes + 16) + skew * index % 16; };
  const std::uint64_t key = 1000 * bytes + skew;
  test.write(part(1), pattern(key + static_cast<std::uint64_t>(test.rank()), bytes));
  world.barrier();
  const MoveArguments arguments{part(0),
                                part(1),
                                part(2),
                                part(3),
                                signal.data(),
                                bytes,
                                static_cast<std::uint32_t>(test.ahead(1)),
                                static_cast<std::uint32_t>(test.behind(1)),
                                queues.channel(),
                                by_one_command};
  test.run(test.shape(1, true), FirstGroup<kind, MoveBody>{}, arguments, "posts");
  const std::vector<std::byte> come = pattern(key + static_cast<std::uint64_t>(test.behind(1)), bytes);
  check_bytes(come, test.read(part(0), bytes), "put");
  check_bytes(come, test.read(part(3), bytes), "copied");
  check_bytes(pattern(key + static_cast<std::uint64_t>(test.rank()), bytes), test.read(part(2), bytes), "got");
  world.barrier();
}

POST_CASE(puts_gets_and_copies, 1) {
  need_reach(test, test.world());
  CommandQueues queues(test.world(), 1, {.engine = engine});
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{24},
                                  std::size_t{25}, std::size_t{40}, std::size_t{41}, std::size_t{4096}, most_bytes})
    for (const std::size_t skew : {0, 3})
      for (const bool by_one_command : {false, true})
        for_each_group_kind(test.world(),
                            [&]<GroupKind kind>() { move_bytes<kind>(test, queues, bytes, skew, by_one_command); });
}

struct CrowdArguments {
  std::uint64_t *sum, *last;  ///< a word; [threads of all blocks]
  std::uint32_t peer, posts;
  CommandQueuesView channel;
};

/// CPU threads together post more commands than each queue holds: atomic adds, and puts of rising values.
struct CrowdKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, CrowdArguments a) const {
    const std::uint32_t thread = grid.thread_rank();
    const CommandQueue queue = a.channel.queue(thread);
    for (std::uint64_t i = 1; i <= a.posts; ++i) {
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_atomic(ctx, Verb::add, a.sum, i, a.peer, queue));
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_put(Thread{}, ctx, &a.last[thread], &i, 1, a.peer, queue));
    }
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, quiet(Thread{}, ctx, queue));
  }
};

POST_CASE(more_than_queues_hold, 1) {
  World& world = test.world();
  need_reach(test, world);
  constexpr std::uint32_t blocks = 8;
  const std::uint32_t threads = blocks * test.block_threads();
  // A device engine forwards commands for peers out of its reach. While it forwarded one at a time, 20 posts of GPUs
  // took 9 s.
  const bool passes_on = engine == EngineKind::device && (is_routed(test) || test.on_several_nodes());
  for (const std::uint32_t count : {1u, 3u, 64u}) {
    const std::uint32_t threads_of_a_queue = std::max(1u, threads / count);
    const std::uint32_t posts = test.on_gpu() ? (passes_on ? 4 : 20) : 10 + 150 / threads_of_a_queue;
    CommandQueues queues(world, count, {.engine = engine});
    const std::uint64_t refused_before = queues.statistics().refused;  // the engine also serves other queues
    const SymmetricArray<std::uint64_t> sum(world, 1), last(world, threads);
    const auto peer = static_cast<std::uint32_t>(test.ahead(1));
    test.run(test.shape(blocks, false), CrowdKernel{},
             CrowdArguments{sum.data(), last.data(), peer, posts, queues.channel()}, "a crowd of posts");
    world.barrier();
    BEELINE_CHECK_EQ(std::uint64_t{posts} * (posts + 1) / 2 * threads, test.read_value(sum.data()));
    for (std::uint32_t thread = 0; thread < threads; ++thread)
      BEELINE_CHECK_EQ(std::uint64_t{posts}, test.read_value(&last.data()[thread]));
    BEELINE_CHECK(queues.statistics().commands >= std::uint64_t{2} * posts * threads);
    BEELINE_CHECK_EQ(refused_before, queues.statistics().refused);
    world.barrier();
  }
}

struct AtomicArguments {
  std::uint32_t* words;  ///< [7]
  std::uint32_t peer;
  CommandQueuesView channel;
};

struct AtomicKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, AtomicArguments a) const {
    if (grid.thread_rank() != 0) return;
    const CommandQueue queue = a.channel.queue(0);
    constexpr Verb verbs[] = {Verb::add,     Verb::bit_and, Verb::bit_or,  Verb::bit_xor,
                              Verb::minimum, Verb::maximum, Verb::exchange};
    for (std::uint32_t i = 0; i < 7; ++i)
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_atomic(ctx, verbs[i], &a.words[i], 0xf0u, a.peer, queue));
    BEELINE_DEVICE_CHECK_EQ(report, Status::invalid_argument,
                            post_atomic(ctx, Verb::compare_swap, a.words, 1u, a.peer, queue));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, quiet(Thread{}, ctx, queue));
  }
};

POST_CASE(atomics, 1) {
  World& world = test.world();
  need_reach(test, world);
  CommandQueues queues(world, 1, {.engine = engine});
  const SymmetricArray<std::uint32_t> words(world, 7);
  const std::vector<std::uint32_t> before(7, 0x3cu);
  world.copy(words.data(), before.data(), words.bytes());
  world.barrier();
  test.run(test.shape(1, false), AtomicKernel{},
           AtomicArguments{words.data(), static_cast<std::uint32_t>(test.ahead(1)), queues.channel()}, "atomics");
  world.barrier();
  const std::uint32_t expected[] = {0x12cu, 0x30u, 0xfcu, 0xccu, 0x3cu, 0xf0u, 0xf0u};
  for (std::size_t i = 0; i < 7; ++i) BEELINE_CHECK_EQ(expected[i], test.read_value(&words.data()[i]));
  world.barrier();
}

/// All ranks add to one word, in GPU memory and in host memory, between puts of the same queues: their atomics exclude
/// each other, whoever carries them out.
POST_CASE(one_word_of_all_ranks, 1) {
  World& world = test.world();
  need_reach(test, world);
  const std::uint32_t threads = test.block_threads(), posts = 5;
  CommandQueues queues(world, 2, {.engine = engine});
  const SymmetricArray<std::uint64_t> last(world, std::size_t{threads} * static_cast<std::size_t>(test.size()));
  for (const Heap heap : {Heap::symmetric, Heap::pinned}) {
    const SymmetricArray<std::uint64_t> sum(world, 1, heap);
    test.run(test.shape(1, false), CrowdKernel{},
             CrowdArguments{sum.data(), last.data() + std::size_t{threads} * static_cast<std::size_t>(test.rank()), 0,
                            posts, queues.channel()},
             "adds of all ranks");
    world.barrier();
    const std::uint64_t added = std::uint64_t{posts} * (posts + 1) / 2 * threads;
    if (test.rank() == 0)
      BEELINE_CHECK_EQ(added * static_cast<std::uint64_t>(test.size()), test.read_value(sum.data()));
    world.barrier();
  }
}

struct BadArguments {
  std::byte *bytes, *nowhere;
  std::uint64_t* word;
  std::uint32_t peer;
  CommandQueuesView channel;
};

/// The engine refuses a command on memory that is not there, and all later ones: no signal announces missing data.
struct BadKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, BadArguments a) const {
    const Thread one{};
    if (grid.thread_rank() != 0) return;
    const CommandQueue bad = a.channel.queue(0), good = a.channel.queue(1);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                            post_put_signal(one, ctx, a.bytes, a.nowhere, 4096, a.word, 2, a.peer, bad));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_copy(one, ctx, a.bytes, a.nowhere, 4096, bad));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_signal(one, ctx, a.word, 3, a.peer, bad));
    BEELINE_DEVICE_CHECK_EQ(report, Status::invalid_argument, quiet(one, ctx, bad));
    BEELINE_DEVICE_CHECK_EQ(report, Status::invalid_argument, flush(one, ctx, bad));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, quiet(one, ctx, good));
  }
};

POST_CASE(memory_that_is_not_there, 1) {
  World& world = test.world();
  need_reach(test, world);
  CommandQueues queues(world, 2, {.engine = engine});
  const SymmetricArray<std::byte> bytes(world, 4096);
  const Signals word(world, 1);
  auto* const nowhere = reinterpret_cast<std::byte*>(std::uintptr_t{4096});
  const std::string refuser = "rank " + std::to_string(test.rank()) + "'s engine";
  const std::uint64_t refused_before = queues.statistics().refused;  // the world's engine also serves other cases
  const BadArguments arguments{bytes.data(), nowhere, word.data(), static_cast<std::uint32_t>(test.ahead(1)),
                               queues.channel()};
  check_error(Status::invalid_argument, {refuser, "4096", "not there"},
              [&] { test.run(test.shape(1, false), BadKernel{}, arguments, "bad posts"); });
  test.check_report("bad posts");
  world.synchronize();  // the error was already reported
  world.barrier();
  BEELINE_CHECK_EQ(std::uint64_t{0}, test.read_value(word.data()));
  BEELINE_CHECK_EQ(refused_before + 3, queues.statistics().refused);
  const std::vector<std::string> refusals = queues.refusals();
  BEELINE_CHECK_EQ(std::size_t{1}, refusals.size());
  BEELINE_CHECK_CONTAINS(refusals.front(), refuser);
  BEELINE_CHECK(!world.failed());
  world.barrier();
}

struct GoneArguments {
  std::byte *gone, *bytes, *nowhere;  ///< [count] at the peer, and on this rank
  std::uint64_t* word;
  std::uint32_t peer;
  CommandQueuesView channel;
};
constexpr std::size_t gone_bytes = 100'000;

/// The peer's memory is looked up when the command is carried out, the poster's when the bytes of a get arrive.
struct GoneKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, GoneArguments a) const {
    const Thread one{};
    if (grid.thread_rank() != 0) return;
    const CommandQueue put = a.channel.queue(0), get = a.channel.queue(1), to = a.channel.queue(2),
                       good = a.channel.queue(3);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_put(one, ctx, a.gone, a.bytes, gone_bytes, a.peer, put));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_signal(one, ctx, a.word, 1, a.peer, put));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_get(one, ctx, a.bytes, a.gone, gone_bytes, a.peer, get));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_get(one, ctx, a.nowhere, a.bytes, gone_bytes, a.peer, to));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_atomic(ctx, Verb::add, a.word + 1, 1, a.peer, good));
    for (std::uint32_t queue = 0; queue < 3; ++queue)
      BEELINE_DEVICE_CHECK_EQ(report, Status::invalid_argument, quiet(one, ctx, a.channel.queue(queue)));
    BEELINE_DEVICE_CHECK_EQ(report, Status::invalid_argument, flush(one, ctx, put));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_signal(one, ctx, a.word, 2, a.peer, get));
    BEELINE_DEVICE_CHECK_EQ(report, Status::invalid_argument, quiet(one, ctx, get));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, quiet(one, ctx, good));
  }
};

BEELINE_CASE(post, memory_that_is_gone, 2) {
  World& world = test.world();
  need_reach(test, world);
  test.skip_if(test.on_gpu(), "a GPU's engine finds out about the poster's own memory first");
  CommandQueues queues(world, 4);
  const Segment& segment = world.create_segment(MemoryKind::host, gone_bytes);
  std::byte* const gone = segment.parts[static_cast<std::size_t>(test.rank())].address;
  world.destroy_segment(segment.id);
  const SymmetricArray<std::byte> bytes(world, gone_bytes);
  const Signals words(world, 2);
  world.barrier();
  const GoneArguments arguments{gone,
                                bytes.data(),
                                reinterpret_cast<std::byte*>(std::uintptr_t{4096}),
                                words.data(),
                                static_cast<std::uint32_t>(test.ahead(1)),
                                queues.channel()};
  check_error(Status::invalid_argument, {"rank " + std::to_string(test.rank()) + "'s engine refused command 1"},
              [&] { test.run(test.shape(1, false), GoneKernel{}, arguments, "posts to memory that is gone"); });
  test.check_report("posts to memory that is gone");
  world.barrier();
  const std::vector<std::string> refusals = queues.refusals();
  BEELINE_CHECK_EQ(std::size_t{3}, refusals.size());
  for (const std::size_t queue : {0, 1}) BEELINE_CHECK_CONTAINS(refusals[queue], "no memory of its peer is there");
  BEELINE_CHECK_CONTAINS(refusals[2], "memory of its poster is not there");
  BEELINE_CHECK_EQ(std::uint64_t{0}, test.read_value(words.data()));
  BEELINE_CHECK_EQ(std::uint64_t{1}, test.read_value(words.data() + 1));
  BEELINE_CHECK(!world.failed());
  world.barrier();
}

struct SegmentArguments {
  std::byte *destination, *source;
  std::size_t bytes;
  std::uint32_t peer, posts;
  CommandQueuesView channel;
};
struct SegmentKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport*, SegmentArguments a) const {
    for (std::uint32_t i = 0; i < a.posts; ++i)
      static_cast<void>(post_put(grid.block(), ctx, a.destination, a.source, a.bytes, a.peer, a.channel.queue(0)));
  }
};

/// No segment is unmapped while the engine copies; later commands on it are refused.
POST_CASE(a_segment_that_goes, 1) {
  World& world = test.world();
  test.skip_if(world.device().is_gpu() || world.mixed(), "the work of a GPU's streams ends before its memory goes");
  CommandQueues queues(world, 1, {.engine = engine});
  constexpr std::size_t bytes = std::size_t{1} << 20;
  const Segment& segment = world.create_segment(MemoryKind::host, 2 * bytes);
  std::byte* const mine = segment.parts[static_cast<std::size_t>(test.rank())].address;
  test.run(
      test.shape(1, false), SegmentKernel{},
      SegmentArguments{mine, mine + bytes, bytes, static_cast<std::uint32_t>(test.ahead(1)), 100, queues.channel()},
      "posts to a segment");
  world.destroy_segment(segment.id);
  world.barrier();
  BEELINE_CHECK(!world.failed());
}

/// Destroying queues waits for their posted commands. A device engine takes several leases for these.
POST_CASE(large_puts_under_way_at_the_end, 1) {
  World& world = test.world();
  need_reach(test, world);
  const std::size_t bytes = std::size_t{test.on_gpu() ? 16u : 4u} << 20;
  constexpr std::uint32_t posts = 16;
  const SymmetricArray<std::byte> memory(world, 2 * bytes);
  test.write(memory.data() + bytes, pattern(static_cast<std::uint64_t>(test.rank()), bytes));
  world.barrier();
  {
    const CommandQueues queues(world, 1, {.engine = engine});
    const std::uint64_t before = queues.statistics().leases;
    test.run(test.shape(1, false), SegmentKernel{},
             SegmentArguments{memory.data(), memory.data() + bytes, bytes, static_cast<std::uint32_t>(test.ahead(1)),
                              posts, queues.channel()},
             "large posts");
    if (engine == EngineKind::device) {
      queues.quiet();
      BEELINE_CHECK(queues.statistics().leases > before);
      BEELINE_CHECK(queues.statistics().bytes >= posts * bytes);
    }
  }
  world.barrier();
  check_bytes(pattern(static_cast<std::uint64_t>(test.behind(1)), bytes), test.read(memory.data(), bytes), "put");
  world.barrier();
}

/// A grid that waits and fills the device would keep out the device engine's block that it waits for: it is refused.
BEELINE_CASE(post, a_device_engine_keeps_its_room, 1) {
  World& world = test.world();
  need_reach(test, world);
  const unsigned blocks = test.on_gpu()
                              ? resident_blocks<NoKernel, DeviceReport*, std::uint32_t>(world, test.block_threads())
                              : max_host_threads / test.block_threads();
  test.skip_if(test.on_gpu() && world.ranks_on_device() > 1, "the device is shared");
  const LaunchOptions full = test.shape(blocks, true);
  {
    const CommandQueues queues(world, 1, {.engine = EngineKind::device});
    check_error(Status::no_resource, {"device engine"}, [&] { launch_nothing(world, full); });
    world.barrier();
  }
  launch_nothing(world, full);
  world.synchronize();
  world.barrier();
}

struct BusyArguments {
  std::uint64_t* sum;
  std::uint32_t peer, posts;
  CommandQueuesView channel;
};
struct BusyKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, BusyArguments a) const {
    if (grid.thread_rank() != 0) return;
    for (std::uint32_t i = 0; i < a.posts; ++i)
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_atomic(ctx, Verb::add, a.sum, 1, a.peer, a.channel.queue(0)));
  }
};

/// Kernels that fill the device, and calls that wait for all of its work, complete while queues are served.
BEELINE_CASE(post, whole_devices_beside_a_device_engine, 1) {
  World& world = test.world();
  need_reach(test, world);
  constexpr std::uint32_t rounds = 20, posts = 100;
  CommandQueues queues(world, 1, {.engine = EngineKind::device});
  const SymmetricArray<std::uint64_t> sum(world, 1);
  FullDevice full(test);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    full.launch();
    test.run(test.shape(1, false), BusyKernel{},
             BusyArguments{sum.data(), static_cast<std::uint32_t>(test.ahead(1)), posts, queues.channel()}, "posts");
    full.launch();
    full.synchronize();
  }
  queues.quiet();
  world.barrier();
  BEELINE_CHECK_EQ(std::uint64_t{rounds} * posts, test.read_value(sum.data()));
  world.barrier();
}

POST_CASE(queues_of_a_team, 2) {
  World& world = test.world();
  need_reach(test, world);
  check_error(Status::invalid_argument, {"0 of them"}, [&] { const CommandQueues none(world, 0, {.engine = engine}); });
  const std::unique_ptr<Team> team = world.make_team(test.alternate_ranks());
  CommandQueues queues(*team, 2, {.engine = engine});
  const SymmetricArray<std::uint64_t> sum(*team, 1), last(*team, test.block_threads());
  const auto peer = static_cast<std::uint32_t>((team->rank() + 1) % team->size());
  test.run(*team, test.shape(1, false), CrowdKernel{},
           CrowdArguments{sum.data(), last.data(), peer, 10, queues.channel()}, "posts in a team");
  team->barrier();
  BEELINE_CHECK_EQ(std::uint64_t{55} * test.block_threads(), test.read_value(sum.data()));
  team->barrier();
}

}  // namespace

}  // namespace beeline_test::post_cases
