// SPDX-License-Identifier: Apache-2.0
// Verbs-style queue pairs among ranks, with their rings in either placement, at every step of optimization.
#include <algorithm>
#include <string>
#include <vector>

#include "beeline/host/verbs_queues.hpp"
#include "tests/conformance/queue_cases.hpp"
#include "tests/conformance/rank_test.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::verbs_cases {

namespace {

using namespace beeline;

using Words = std::vector<std::uint64_t>;  // used by name for one word: nvcc drops the braces of a single value

/// Requests that a kernel posts one after another, and completions that it then polls; in symmetric memory.
struct Script {
  VerbsQueuesView queues;
  const VerbsRequest* requests;
  VerbsCompletion* completions;  ///< [waits]
  std::uint32_t posts, waits;
  std::uint32_t pair, completion_queue;
  bool receives;
};

template <VerbsSteps steps>
struct ScriptKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, Script script) const {
    const auto& block = grid.block();
    for (std::uint32_t i = 0; i < script.posts; ++i)
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                              script.receives
                                  ? post_receive<steps>(block, script.queues, script.pair, script.requests[i])
                                  : post_send<steps>(block, script.queues, script.pair, script.requests[i]));
    for (std::uint32_t i = 0; i < script.waits; ++i) {
      VerbsCompletion completion;
      const Status status = wait_completion<steps>(block, ctx, script.queues, script.completion_queue, completion);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
      if (grid.thread_rank() == 0) script.completions[i] = completion;
    }
  }
};

/// A rank's queue pairs: pair 0 to the rank ahead, pair 1 to the rank behind; and memory that all have registered.
class Verbs {
 public:
  Verbs(RankTest& test, VerbsOptions options)
      : test_(test), world_(test.world()), queues_(world_, std::vector{test.ahead(1), test.behind(1)}, options),
        memory_(world_, words), requests_(world_, most), completions_(world_, most) {
    std::vector<std::uint64_t> values(words);
    for (std::size_t i = 0; i < words; ++i) values[i] = value_of(test.rank(), i);
    world_.copy(memory_.data(), values.data(), memory_.bytes());
    mine_ = queues_.register_memory(memory_.data(), memory_.bytes());
    world_.barrier();
    theirs_ = queues_.key_of(mine_, test.ahead(1));
  }

  static constexpr std::size_t words = 4096, most = 64;
  static std::uint64_t value_of(int rank, std::size_t word) {
    return 100'000 * (static_cast<std::uint64_t>(rank) + 1) + word;
  }

  [[nodiscard]] VerbsQueues& queues() { return queues_; }
  [[nodiscard]] VerbsSegment here(std::size_t word, std::size_t count = 1) const { return segment(word, count, mine_); }
  [[nodiscard]] VerbsSegment ahead(std::size_t word, std::size_t count = 1) const {
    return segment(word, count, theirs_);
  }
  /// The pair that the rank behind sends to.
  [[nodiscard]] std::uint32_t incoming() const { return test_.size() < 3 ? 0 : 1; }
  [[nodiscard]] std::vector<std::uint64_t> read(std::size_t word, std::size_t count) {
    std::vector<std::uint64_t> values(count);
    world_.copy(values.data(), memory_.data() + word, count * sizeof values[0]);
    return values;
  }
  void expect(const Words& expected, std::size_t word) {
    const std::vector<std::uint64_t> observed = read(word, expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) BEELINE_CHECK_EQ(expected[i], observed[i]);
  }

  /// Posts to a pair's send or receive ring, and waits for completions of a queue.
  template <VerbsSteps steps>
  std::vector<VerbsCompletion> run(const std::vector<VerbsRequest>& requests, std::uint32_t pair, bool receives,
                                   std::uint32_t waits, std::uint32_t completion_queue) {
    world_.copy(requests_.data(), requests.data(), requests.size() * sizeof requests[0]);
    const Script script{queues_.view(),
                        requests_.data(),
                        completions_.data(),
                        static_cast<std::uint32_t>(requests.size()),
                        waits,
                        pair,
                        completion_queue,
                        receives};
    test_.run(test_.shape(1, true), ScriptKernel<steps>{}, script, "verbs");
    std::vector<VerbsCompletion> completions(waits);
    world_.copy(completions.data(), completions_.data(), waits * sizeof completions[0]);
    return completions;
  }
  template <VerbsSteps steps = VerbsSteps{}>
  std::vector<VerbsCompletion> send(const std::vector<VerbsRequest>& requests) {
    return run<steps>(requests, 0, false, static_cast<std::uint32_t>(requests.size()), 0);
  }

 private:
  [[nodiscard]] VerbsSegment segment(std::size_t word, std::size_t count, VerbsKey key) const {
    return segment_of(world_.host_context(), memory_.data() + word, static_cast<std::uint32_t>(8 * count), key);
  }

  RankTest& test_;
  World& world_;
  VerbsQueues queues_;
  const SymmetricArray<std::uint64_t> memory_;
  const SymmetricArray<VerbsRequest> requests_;
  const SymmetricArray<VerbsCompletion> completions_;
  VerbsKey mine_, theirs_;
};

void expect(const VerbsCompletion& completion, VerbsOpcode opcode, std::uint32_t index, std::uint32_t bytes,
            std::uint64_t value = 0) {
  BEELINE_CHECK_EQ(std::string("ok"), std::string(describe(completion.status)));
  BEELINE_CHECK_EQ(static_cast<int>(opcode), static_cast<int>(completion.opcode));
  BEELINE_CHECK_EQ(index, completion.index);
  BEELINE_CHECK_EQ(bytes, completion.bytes);
  BEELINE_CHECK_EQ(value, completion.value);
  BEELINE_CHECK_EQ(opcode == VerbsOpcode::receive, completion.is_receive);
}

template <VerbsSteps steps>
void every_opcode(RankTest& test, EngineKind engine) {
  World& world = test.world();
  Verbs verbs(test, {.engine = engine});
  const int rank = test.rank(), behind = test.behind(1);
  VerbsRequest receive = receive_request(verbs.here(1000, 2));
  receive.segments = 2, receive.local[1] = verbs.here(1100, 1000);
  static_cast<void>(
      verbs.run<steps>({receive, VerbsRequest{.opcode = VerbsOpcode::receive}}, verbs.incoming(), true, 0, 0));
  world.barrier();

  VerbsRequest write = write_request(verbs.ahead(10, 5), verbs.here(0, 2));
  write.segments = 2, write.local[1] = verbs.here(3, 3);
  VerbsRequest quiet = write_request(verbs.ahead(20), verbs.here(7));
  quiet.signaled = false;
  // Where the peers ahead and behind are one rank, both kinds of completions come from one queue.
  const bool is_shared = verbs.incoming() == 0;
  std::vector<VerbsCompletion> done = verbs.run<steps>(
      {write, quiet, send_request(verbs.here(2000, 700), 41), write_request(verbs.ahead(30), verbs.here(8), 42),
       fetch_add_request(verbs.ahead(40), 5),
       compare_swap_request(verbs.ahead(40), Verbs::value_of(test.ahead(1), 40) + 5, 77),
       compare_swap_request(verbs.ahead(40), 1, 2), read_request(verbs.ahead(3000, 900), verbs.here(50, 900))},
      0, false, is_shared ? 9 : 7, 0);
  const auto receives =
      std::stable_partition(done.begin(), done.end(), [](const VerbsCompletion& each) { return !each.is_receive; });
  const std::vector<VerbsCompletion> got =
      is_shared ? std::vector(receives, done.end()) : verbs.run<steps>({}, 0, true, 2, verbs.incoming());
  const std::uint64_t word = Verbs::value_of(test.ahead(1), 40);
  // With step 4 a poll reads only the last word of these completions.
  const auto expect_plain = [](const VerbsCompletion& completion, VerbsOpcode opcode, std::uint32_t index,
                               std::uint32_t bytes) {
    expect(completion, opcode, steps.checks ? index : 0, steps.checks ? bytes : 0);
  };
  expect_plain(done[0], VerbsOpcode::write, 0, 40);
  expect_plain(done[1], VerbsOpcode::send, 2, 5600);
  expect(done[2], VerbsOpcode::write_with_immediate, 3, 8);
  expect(done[3], VerbsOpcode::fetch_add, 4, 8, word);
  expect(done[4], VerbsOpcode::compare_swap, 5, 8, word + 5);
  expect(done[5], VerbsOpcode::compare_swap, 6, 8, 77);
  expect_plain(done[6], VerbsOpcode::read, 7, 7200);
  expect(got[0], VerbsOpcode::receive, 0, 5600);
  expect(got[1], VerbsOpcode::receive, 1, 8);
  BEELINE_CHECK_EQ(41u, got[0].immediate);
  BEELINE_CHECK_EQ(42u, got[1].immediate);

  world.barrier();
  const auto from = [](int owner, std::size_t first) { return Verbs::value_of(owner, first); };
  verbs.expect({from(behind, 0), from(behind, 1), from(behind, 3), from(behind, 4), from(behind, 5)}, 10);
  verbs.expect(Words{from(behind, 7)}, 20);
  verbs.expect(Words{from(behind, 8)}, 30);
  verbs.expect(Words{77}, 40);
  verbs.expect({from(behind, 2000), from(behind, 2001), from(rank, 1002)}, 1000);
  verbs.expect({from(behind, 2002), from(behind, 2003)}, 1100);
  verbs.expect({from(behind, 2699), from(rank, 1798)}, 1797);
  verbs.expect({from(test.ahead(1), 3000), from(test.ahead(1), 3001)}, 50);
  verbs.expect({from(test.ahead(1), 3899), from(rank, 950)}, 949);
  world.barrier();
}

ADAPTER_CASE(verbs, opcodes, 1) {
  every_opcode<verbs_steps[0]>(test, engine);
  every_opcode<VerbsSteps{}>(test, engine);
  every_opcode<verbs_steps[4]>(test, engine);
}

struct FloodArguments {
  VerbsQueuesView queues;
  VerbsSegment to;  ///< words at the peer, one for each block
  std::uint32_t posts;
};

/// Each block has a queue pair, and adds to a word at its peer, more times than the pair's rings have entries.
struct FloodKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, FloodArguments a) const {
    const auto& block = grid.block();
    const std::uint32_t pair = grid.block_rank();
    VerbsSegment to = a.to;
    to.address += 8 * pair;
    std::uint32_t seen = 0;
    std::uint64_t last = 0;
    for (std::uint32_t i = 0; i < a.posts;) {
      VerbsRequest request = fetch_add_request(to, 1);
      request.signaled = i % 3 == 0 || i + 1 == a.posts;
      const Status status = post_send(block, a.queues, pair, request);
      if (status == Status::ok) {
        ++i;
        continue;
      }
      BEELINE_DEVICE_CHECK_EQ(report, Status::no_resource, status);
      if (!take(block, ctx, report, a, pair, seen, last)) return;
    }
    while (last != a.posts)
      if (!take(block, ctx, report, a, pair, seen, last)) return;
  }

 private:
  /// Waits for one completion: `last` becomes the number of requests that are complete.
  template <class Group>
  static BEELINE_HOST_DEVICE bool take(const Group& block, const Context& ctx, DeviceReport* report,
                                       const FloodArguments& a, std::uint32_t pair, std::uint32_t& seen,
                                       std::uint64_t& last) {
    VerbsCompletion completion;
    if (wait_completion(block, ctx, a.queues, pair, completion) != Status::ok) return false;
    BEELINE_DEVICE_CHECK_EQ(report, VerbsStatus::ok, completion.status);
    BEELINE_DEVICE_CHECK_EQ(report, completion.index, completion.value % 1'000'000);
    last = completion.index + 1;
    return ++seen <= a.posts;
  }
};

ADAPTER_CASE(verbs, more_than_rings_hold, 1) {
  World& world = test.world();
  constexpr std::uint32_t pairs = 5, posts = 300;
  const int other = test.rank() ^ 1, peer = other < test.size() ? other : test.rank();
  VerbsQueues queues(world, std::vector<int>(pairs, peer), {.engine = engine, .depth = 8});
  const SymmetricArray<std::uint64_t> words(world, pairs);
  const std::vector<std::uint64_t> start(pairs, 7'000'000);
  world.copy(words.data(), start.data(), words.bytes());
  const VerbsKey mine = queues.register_memory(words.data(), words.bytes());
  world.barrier();
  const VerbsSegment to = segment_of(world.host_context(), words.data(), 8, queues.key_of(mine, peer));
  test.run(test.shape(pairs, true), FloodKernel{}, FloodArguments{queues.view(), to, posts}, "a flood of requests");
  world.barrier();
  for (std::size_t i = 0; i < pairs; ++i) BEELINE_CHECK_EQ(start[i] + posts, test.read_value(&words.data()[i]));
  world.barrier();
}

/// Errors are reported as completions, in the order of the ring. The pair works after a reset, and the world has not
/// failed.
ADAPTER_CASE(verbs, errors, 1) {
  World& world = test.world();
  Verbs verbs(test, {.engine = engine});
  std::uint32_t index = 0;
  const auto expect_statuses = [&](const std::vector<VerbsRequest>& requests,
                                   const std::vector<VerbsStatus>& statuses) {
    const std::vector<VerbsCompletion> done = verbs.send<verbs_steps[4]>(requests);
    for (std::size_t i = 0; i < statuses.size(); ++i) {
      BEELINE_CHECK_EQ(std::string(describe(statuses[i])), std::string(describe(done[i].status)));
      BEELINE_CHECK_EQ(statuses[i] == VerbsStatus::ok ? 0 : index, done[i].index);
      ++index;
    }
    verbs.queues().reset(0);
    world.barrier();
  };
  const VerbsRequest good = write_request(verbs.ahead(1, 30), verbs.here(200, 30));
  VerbsRequest bad = good;
  bad.remote.key = VerbsKey::of(bad.remote.key.value ^ 1);
  expect_statuses({good, bad, good}, {VerbsStatus::ok, VerbsStatus::bad_remote_key, VerbsStatus::flushed});
  bad = good, bad.opcode = static_cast<VerbsOpcode>(200);
  expect_statuses({bad, good}, {VerbsStatus::bad_opcode, VerbsStatus::flushed});
  expect_statuses({send_request(verbs.here(0))}, {VerbsStatus::no_receive});
  expect_statuses({read_request(verbs.ahead(0, Verbs::words + 1), verbs.here(0, Verbs::words + 1))},
                  {VerbsStatus::bad_local_key});
  verbs.queues().deregister_memory(good.local[0].key);
  expect_statuses({good}, {VerbsStatus::bad_local_key});
  check_error(Status::invalid_argument, {"no key"}, [&] { verbs.queues().deregister_memory(good.local[0].key); });
  world.barrier();
  expect_statuses({fetch_add_request(verbs.ahead(1), 1)}, {VerbsStatus::bad_remote_key});
  world.synchronize();  // an engine's refusals would be thrown here
  BEELINE_CHECK(!world.failed());
}

/// A segment that is freed while requests name it: the engine refuses them, and never touches it.
BEELINE_CASE(post, verbs_memory_that_is_freed, 1) {
  World& world = test.world();
  need_one_node(test);
  test.skip_if(test.on_gpu(), "the segments are in host memory");
  for (const EngineKind engine : {EngineKind::host, EngineKind::device}) {
    if (engine == EngineKind::device && is_routed(test)) continue;
    Verbs verbs(test, {.engine = engine});
    constexpr std::size_t bytes = 1 << 20;
    const Segment& segment = world.create_segment(MemoryKind::host, bytes);
    const std::byte* const part = segment.parts[static_cast<std::size_t>(test.rank())].address;
    const VerbsKey mine = verbs.queues().register_memory(part, bytes);
    world.barrier();
    const VerbsKey theirs = verbs.queues().key_of(mine, test.ahead(1));
    const VerbsSegment to = segment_of(world.host_context(), part, 4096, theirs);
    const VerbsRequest request = write_request({to.address + 8192, 4096, theirs}, {to.address, 4096, mine});
    BEELINE_CHECK_EQ(0, static_cast<int>(verbs.send({request})[0].status));
    world.barrier();
    world.destroy_segment(segment.id);
    const std::vector<VerbsCompletion> done = verbs.send({request, fetch_add_request({to.address, 8, theirs}, 1)});
    BEELINE_CHECK_EQ(static_cast<int>(VerbsStatus::refused), static_cast<int>(done[0].status));
    BEELINE_CHECK_EQ(static_cast<int>(VerbsStatus::flushed), static_cast<int>(done[1].status));
    if (engine == EngineKind::host) BEELINE_CHECK_CONTAINS(verbs.queues().refusal(0), "no memory of its peer is there");
    verbs.queues().reset(0);
    world.barrier();
    BEELINE_CHECK_EQ(0, static_cast<int>(verbs.send({write_request(verbs.ahead(0), verbs.here(1))})[0].status));
    check_error(Status::invalid_argument, {"not in its symmetric memory"},
                [&] { static_cast<void>(verbs.queues().register_memory(part, bytes)); });
    world.barrier();
  }
}

/// A segment that is freed while an engine writes to it: each request is complete or refused, and none touches unmapped
/// memory.
BEELINE_CASE(post, verbs_memory_that_is_freed_in_flight, 1) {
  World& world = test.world();
  need_one_node(test);
  test.skip_if(test.on_gpu(), "the segments are in host memory");
  constexpr std::uint32_t bytes = 1 << 20, writes = 16;
  VerbsQueues queues(world, std::vector{test.ahead(1), test.behind(1)}, {.posts_from_cpu = true});
  const VerbsQueuesView& view = queues.view();
  const SymmetricArray<std::byte> source(world, bytes);
  const Segment& segment = world.create_segment(MemoryKind::host, bytes);
  const std::byte* const part = segment.parts[static_cast<std::size_t>(test.rank())].address;
  const VerbsKey from = queues.register_memory(source.data(), bytes), mine = queues.register_memory(part, bytes);
  world.barrier();
  const VerbsKey theirs = queues.key_of(mine, test.ahead(1));
  const VerbsRequest write = write_request(segment_of(world.host_context(), part, bytes, theirs),
                                           segment_of(world.host_context(), source.data(), bytes, from));
  for (std::uint32_t i = 0; i < writes; ++i)
    BEELINE_CHECK_EQ(name(Status::ok), name(post_send(Thread{}, view, 0, write)));
  world.destroy_segment(segment.id);
  VerbsStatus expected = VerbsStatus::ok;
  for (std::uint32_t i = 0; i < writes; ++i) {
    VerbsCompletion done;
    BEELINE_CHECK_EQ(name(Status::ok), name(wait_completion(Thread{}, world.host_context(), view, 0, done)));
    if (expected == VerbsStatus::ok && done.status != VerbsStatus::ok) expected = VerbsStatus::refused;
    BEELINE_CHECK_EQ(std::string(describe(expected)), std::string(describe(done.status)));
    if (expected == VerbsStatus::refused) expected = VerbsStatus::flushed;
  }
  BEELINE_CHECK(!world.failed());
  world.barrier();
}

/// Several pairs share one completion queue, and CPU threads post.
BEELINE_CASE(post, verbs_by_cpu_threads_with_one_completion_queue, 1) {
  World& world = test.world();
  need_one_node(test);
  constexpr std::uint32_t pairs = 4;
  VerbsQueues queues(world, std::vector<int>(pairs, test.rank()),
                     {.posts_from_cpu = true, .completion_queues = 1, .engine_threads = 2});
  const SymmetricArray<std::uint64_t> words(world, 64, Heap::pinned);
  const VerbsKey key = queues.register_memory(words.data(), words.bytes());
  const VerbsQueuesView& view = queues.view();
  const auto at = [&](std::size_t word) { return segment_of(world.host_context(), &words.data()[word], 8, key); };
  for (std::uint32_t round = 0; round < 50; ++round) {
    for (std::uint32_t pair = 0; pair < pairs; ++pair) {
      BEELINE_CHECK_EQ(name(Status::ok), name(post_receive(Thread{}, view, pair, receive_request(at(8 * pair + 1)))));
      words.data()[8 * pair] = 1000 * round + pair;
      BEELINE_CHECK_EQ(name(Status::ok), name(post_send(Thread{}, view, pair, send_request(at(8 * pair), round))));
    }
    std::uint32_t sends = 0, receives = 0;
    for (std::uint32_t i = 0; i < 2 * pairs; ++i) {
      VerbsCompletion done;
      BEELINE_CHECK_EQ(name(Status::ok), name(wait_completion(Thread{}, world.host_context(), view, 0, done)));
      BEELINE_CHECK_EQ(std::string("ok"), std::string(describe(done.status)));
      BEELINE_CHECK_EQ(round, done.index);
      (done.is_receive ? receives : sends) |= 1u << (done.pair - view.posted[0].number);
    }
    BEELINE_CHECK_EQ((1u << pairs) - 1, sends & receives);
    for (std::uint32_t pair = 0; pair < pairs; ++pair)
      BEELINE_CHECK_EQ(std::uint64_t{1000} * round + pair, words.data()[8 * pair + 1]);
  }
  check_error(Status::invalid_argument, {"VerbsOptions::assisted"}, [&] { static_cast<void>(queues.assisted()); });
  VerbsCompletion none;
  BEELINE_CHECK_EQ(name(Status::in_progress), name(poll_completion(Thread{}, view, 0, none)));
  world.barrier();
}

struct AssistedArguments {
  VerbsAssistedView queues;
  VerbsSegment from, to, word, inbox;
  std::uint32_t pair, incoming, rounds;
};

/// Receives that are posted before the first send: in a ring of ranks, a rank may be this many messages ahead of the
/// next rank.
constexpr std::uint32_t receives_ahead = 6;

/// Sends to the rank ahead, and receives from the rank behind, more times than there are mailboxes.
struct AssistedKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, AssistedArguments a) const {
    const auto& block = grid.block();
    VerbsCompletion done;
    for (std::uint32_t i = 0; i < a.rounds; ++i) {
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait_assisted(block, ctx, a.queues, a.incoming, true, done));
      BEELINE_DEVICE_CHECK_EQ(report, i, done.index);
      BEELINE_DEVICE_CHECK_EQ(report, i + 5, done.immediate);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_assisted(block, a.queues, a.incoming, receive_request(a.inbox)));
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_assisted(block, a.queues, a.pair, fetch_add_request(a.word, 3)));
      if (i + 1 < a.rounds)
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                                post_assisted(block, a.queues, a.pair, send_request(a.from, i + 6)));
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait_assisted(block, ctx, a.queues, a.pair, false, done));
      BEELINE_DEVICE_CHECK_EQ(report, VerbsStatus::ok, done.status);
      if (i + 1 < a.rounds)
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait_assisted(block, ctx, a.queues, a.pair, false, done));
      BEELINE_DEVICE_CHECK_EQ(report, VerbsStatus::ok, done.status);
    }
  }
};
struct AssistedStart {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, AssistedArguments a) const {
    const auto& block = grid.block();
    if (a.rounds == 0) {
      for (std::uint32_t i = 0; i < receives_ahead; ++i)
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                                post_assisted(block, a.queues, a.incoming, receive_request(a.inbox)));
      return;
    }
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_assisted(block, a.queues, a.pair, send_request(a.from, 5)));
    VerbsCompletion done;
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait_assisted(block, ctx, a.queues, a.pair, false, done));
    BEELINE_DEVICE_CHECK_EQ(report, VerbsStatus::ok, done.status);
  }
};
struct AssistedErrors {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, AssistedArguments a) const {
    const auto& block = grid.block();
    VerbsRequest bad = write_request(a.to, a.from);
    BEELINE_DEVICE_CHECK_EQ(report, Status::invalid_argument,
                            post_assisted(block, a.queues, a.pair, inline_write_request(a.to, &bad)));
    bad.remote.key.value ^= 1, bad.remote.key.big_endian = 0;
    VerbsCompletion done;
    for (std::uint32_t i = 0; i < a.queues.depth - 1; ++i)
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_assisted(block, a.queues, a.pair, bad));
    BEELINE_DEVICE_CHECK_EQ(report, Status::no_resource, post_assisted(block, a.queues, a.pair, bad));
    for (std::uint32_t i = 0; i < a.queues.depth - 1; ++i) {
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait_assisted(block, ctx, a.queues, a.pair, false, done));
      BEELINE_DEVICE_CHECK_EQ(report, i == 0 ? VerbsStatus::bad_remote_key : VerbsStatus::flushed, done.status);
    }
    BEELINE_DEVICE_CHECK_EQ(report, Status::timeout,
                            wait_assisted(block, ctx, a.queues, a.pair, false, done, Timeout::test()));
  }
};

/// A CPU thread posts the requests of kernels, and forwards completions and errors.
BEELINE_CASE(post, verbs_assisted, 1) {
  World& world = test.world();
  need_one_node(test);
  Verbs verbs(test, {.assisted = true, .depth = 8});
  const std::uint32_t incoming = verbs.incoming();
  AssistedArguments a{verbs.queues().assisted(),
                      verbs.here(100, 3),
                      verbs.ahead(200, 3),
                      verbs.ahead(300),
                      verbs.here(400, 3),
                      0,
                      incoming,
                      0};
  test.run(test.shape(1, true), AssistedStart{}, a, "receives that a CPU posts");
  // The thread may post after the kernel has ended.
  const VerbsDoorbells& doorbells = verbs.queues().view().doorbells[incoming];
  const Status posted = detail::await_engine(world.host_context(), {}, [&] {
    return detail::load_acquired(doorbells.receive.value) == detail::big_endian(std::uint64_t{receives_ahead});
  });
  BEELINE_CHECK_EQ(name(Status::ok), name(posted));
  world.barrier();
  a.rounds = 12;
  test.run(test.shape(1, true), AssistedStart{}, a, "a send that a CPU posts");
  test.run(test.shape(1, true), AssistedKernel{}, a, "posts by a CPU");
  world.barrier();
  verbs.expect(Words{Verbs::value_of(test.rank(), 300) + 3u * a.rounds}, 300);
  verbs.expect({Verbs::value_of(test.behind(1), 100), Verbs::value_of(test.behind(1), 101)}, 400);
  test.run(test.shape(1, true), AssistedErrors{}, a, "bad requests that a CPU posts");
  verbs.queues().reset(0);
  world.barrier();
  a.rounds = 1;
  test.run(test.shape(1, true), AssistedStart{}, a, "a send after a reset");
  world.barrier();
}

BEELINE_CASE(post, verbs_bad_options, 1) {
  World& world = test.world();
  const std::vector<int> self{test.rank()}, nobody{};
  const auto make = [&] { const VerbsQueues queues(world, self, {.engine = EngineKind::device}); };
  if (test.on_several_nodes())
    return check_error(Status::unavailable, {"a verbs-style queue pair needs memory that all members share"}, make);
  if (world.mixed())
    return check_error(Status::unreachable, {"members on CPUs do not reach the rings of members on GPUs"}, make);
  const auto refused = [&](std::span<const int> peers, const VerbsOptions& options, const char* text) {
    check_error(Status::invalid_argument, {text}, [&] { const VerbsQueues queues(world, peers, options); });
  };
  refused(nobody, {}, "0 verbs-style queue pairs");
  refused(self, {.depth = 3}, "with 3 entries");
  refused(self, {.depth = 1u << 16}, "with 65536 entries");
  refused(self, {.completion_queues = 2}, "2 completion queues for 1 queue pairs");
  refused(self, {.completion_depth = 1}, "with 1 entries");
  refused(self, {.engine = EngineKind::device, .posts_from_cpu = true}, "CPU threads post");
  refused(self, {.engine = EngineKind::device, .engine_threads = 1}, "no threads of the host");
  refused(self, {.engine = EngineKind::device, .assisted = true}, "CPU threads post");
  refused(std::vector{test.size()}, {}, "not in the team");
  if (test.size() > 1) refused(std::vector{1}, {}, "no counterpart");
  const std::string differ = "ranks 0 and 1 give different options for verbs-style queue pairs";
  if (test.size() > 1) refused(self, {.depth = test.rank() == 1 ? 3u : 64u}, differ.c_str());
  if (test.size() > 1) refused(test.rank() == 1 ? nobody : self, {}, differ.c_str());
  if (is_routed(test)) check_error(Status::unreachable, {"verbs-style queue pair"}, make);
  BEELINE_CHECK(!world.failed());
}

}  // namespace

}  // namespace beeline_test::verbs_cases
