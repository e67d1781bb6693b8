// SPDX-License-Identifier: Apache-2.0
// Batches of puts by every route and group: any number, size and alignment of puts, which arrive before the signal that
// follows them; and batches that an engine refuses.
#include <algorithm>
#include <vector>

#include "tests/conformance/foreign_memory.hpp"
#include "tests/conformance/group_kind.hpp"
#include "tests/conformance/queue_cases.hpp"
#include "tests/conformance/rank_test.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::batch_cases {

namespace {

using namespace beeline;

/// Put number i of a batch: 1 to 63 bytes in a cell of its own, at any alignment.
struct Cell {
  static constexpr std::size_t pitch = 64;
  BEELINE_HOST_DEVICE explicit Cell(std::size_t i)
      : bytes(1 + i * 37 % (pitch - 1)), to(i * pitch + i * 5 % (pitch + 1 - bytes)),
        from(i * pitch + i * 11 % (pitch + 1 - bytes)) {}
  std::size_t bytes, to, from;
};
/// Puts after the cells: one of the largest size that fits an entry, and longer ones.
constexpr std::size_t long_puts = 3;
BEELINE_HOST_DEVICE constexpr std::size_t long_bytes(std::size_t i) { return most_batched_bytes + i * (8 * i + 1); }
constexpr std::size_t all_long_bytes = long_bytes(0) + long_bytes(1) + long_bytes(2);

struct BatchArguments {
  std::byte *to, *from;    ///< [cells, then long puts] at the peer, and on this rank
  std::uint64_t* signals;  ///< [3]: half of the puts have arrived; all have; number of batches
  BatchEntry* entries;
  std::uint32_t capacity, puts, peer, sender;
  std::uint64_t round;
  CommandQueuesView channel;
  bool posts, has_long;
};

struct BatchBody {
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, DeviceReport* report,
                                      BatchArguments a) const {
    PutBatch batch(ctx, a.entries, a.capacity);
    const Status begun =
        a.posts ? batch.begin(group, a.peer, a.channel.queue(0)) : batch.begin(group, a.peer, QueueId{1});
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, begun);
    for (std::uint32_t i = 0; i < a.puts; ++i) {
      if (i == a.puts / 2) batch.signal(group, &a.signals[0], a.round);
      const Cell cell(i);
      batch.put(group, a.to + cell.to, a.from + cell.from, cell.bytes);
    }
    for (std::size_t i = 0, at = a.puts * Cell::pitch; a.has_long && i < long_puts; at += long_bytes(i++))
      batch.put(group, a.to + at, a.from + at, long_bytes(i));
    batch.put(group, a.to, a.from, 0);
    batch.signal(group, &a.signals[1], a.round);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, batch.end(group));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, batch.begin(group, a.peer, QueueId{1}));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, batch.end(group));  // empty
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(group, ctx, &a.signals[1], Compare::equal, a.round, a.sender));
    const Status over = a.posts ? quiet(group, ctx, a.channel.queue(0)) : quiet(group, ctx, QueueId{1});
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, over);
  }
};

std::vector<std::byte> sent_by(int rank, std::uint64_t round, std::size_t bytes) {
  return pattern(1000 * round + static_cast<std::uint64_t>(rank), bytes);
}

/// The expected bytes of the target's memory, which was zero before.
std::vector<std::byte> expected(const std::vector<std::byte>& sent, std::size_t puts, bool has_long) {
  std::vector<std::byte> all(sent.size());
  for (std::size_t i = 0; i < puts; ++i) {
    const Cell cell(i);
    std::copy_n(sent.begin() + static_cast<std::ptrdiff_t>(cell.from), cell.bytes,
                all.begin() + static_cast<std::ptrdiff_t>(cell.to));
  }
  const auto first = static_cast<std::ptrdiff_t>(puts * Cell::pitch);
  if (has_long) std::copy(sent.begin() + first, sent.end(), all.begin() + first);
  return all;
}

struct BatchPlan {
  std::uint32_t puts, capacity;
  int distance;  ///< to the peer; 0: the rank itself
  bool has_long;
};

template <GroupKind kind>
void put_batch(RankTest& test, const BatchPlan& plan, CommandQueues* queues, std::uint64_t round) {
  World& world = test.world();
  const std::size_t bytes = plan.puts * Cell::pitch + all_long_bytes;
  const SymmetricArray<std::byte> to(world, bytes, test.common_heap()), from(world, bytes, test.common_heap());
  const SymmetricArray<std::uint64_t> signals(world, 3, test.common_heap());
  const SymmetricArray<BatchEntry> entries(world, plan.capacity, Heap::pinned);
  test.write(from.data(), sent_by(test.rank(), round, bytes));
  world.barrier();
  const int sender = test.behind(plan.distance);
  test.run(
      test.shape(1, true), FirstGroup<kind, BatchBody>{},
      BatchArguments{to.data(), from.data(), signals.data(), entries.data(), plan.capacity, plan.puts,
                     static_cast<std::uint32_t>(test.ahead(plan.distance)), static_cast<std::uint32_t>(sender), round,
                     queues != nullptr ? queues->channel() : CommandQueuesView{}, queues != nullptr, plan.has_long},
      "a batch");
  check_bytes(expected(sent_by(sender, round, bytes), plan.puts, plan.has_long), test.read(to.data(), bytes), "batch");
  BEELINE_CHECK_EQ(plan.puts == 0 ? 0 : round, test.read_value(signals.data()));
  world.barrier();
}

void put_batches(RankTest& test, CommandQueues* queues) {
  std::uint64_t round = 0;
  for (const BatchPlan& plan : {BatchPlan{0, 1, 1, false}, BatchPlan{1, 1, 1, true}, BatchPlan{64, 256, 1, false},
                                BatchPlan{64, 7, 1, true}, BatchPlan{64, 100, 0, true}, BatchPlan{1000, 600, 1, true}})
    for_each_group_kind(test.world(), [&]<GroupKind kind>() { put_batch<kind>(test, plan, queues, ++round); });
}

BEELINE_CASE(put_get, batches, 1) { put_batches(test, nullptr); }

POST_CASE(posted_batches, 1) {
  need_reach(test, test.world());
  CommandQueues queues(test.world(), 1, {.engine = engine});
  put_batches(test, &queues);
}

struct CountArguments {
  std::uint64_t* sum;
  BatchEntry* entries;
  std::uint32_t peer, batches;
};
struct CountBody {
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, DeviceReport* report,
                                      CountArguments a) const {
    PutBatch batch(ctx, a.entries, 8);
    for (std::uint32_t i = 0; i < a.batches; ++i) {
      batch.begin(group, a.peer);
      batch.signal_add(group, a.sum, 2);
      batch.signal_add(group, a.sum, 3);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, batch.end(group));
    }
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(group, ctx, a.sum, Compare::equal, 5 * a.batches));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, quiet(group, ctx));
  }
};

BEELINE_CASE(put_get, batches_that_count, 1) {
  World& world = test.world();
  test.skip_if(world.mixed(), "GPUs and CPUs share no atomics");
  for (const int distance : {0, 1}) {
    const SymmetricArray<std::uint64_t> sum(world, 1);
    const SymmetricArray<BatchEntry> entries(world, 8, Heap::pinned);
    world.barrier();
    const CountArguments arguments{sum.data(), entries.data(), static_cast<std::uint32_t>(test.ahead(distance)), 100};
    test.run(test.shape(1, true), FirstGroup<GroupKind::block, CountBody>{}, arguments, "batches that count");
    world.barrier();
  }
}

struct GoneArguments {
  std::byte *gone, *bytes;
  std::uint64_t* word;
  BatchEntry* entries;
  std::uint32_t peer;
  CommandQueuesView channel;
};
/// The command of entry 2 uses memory that was freed.
struct GoneKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, GoneArguments a) const {
    if (grid.thread_rank() != 0) return;
    const Thread one{};
    PutBatch batch(ctx, a.entries, 8);
    batch.begin(one, a.peer, a.channel.queue(0));
    batch.put(one, a.word, &a.word[2], 1);
    batch.put(one, a.bytes, a.bytes + 200, 200);
    batch.put(one, a.gone, a.bytes, 8);
    batch.signal(one, &a.word[1], 1);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, batch.end(one));
    BEELINE_DEVICE_CHECK_EQ(report, Status::invalid_argument, quiet(one, ctx, a.channel.queue(0)));
  }
};

BEELINE_CASE(post, a_batch_to_memory_that_is_gone, 2) {
  World& world = test.world();
  need_reach(test, world);
  test.skip_if(test.on_gpu(), "kernels put what is longer than a word by itself");
  test.skip_if(!world.config().peer_access, "ranks whose memory is staged take entries one by one");
  CommandQueues queues(world, 1);
  const Segment& segment = world.create_segment(MemoryKind::host, 4096);
  std::byte* const gone = segment.parts[static_cast<std::size_t>(test.rank())].address;
  world.destroy_segment(segment.id);
  const SymmetricArray<std::byte> bytes(world, 4096);
  const SymmetricArray<std::uint64_t> words(world, 3);
  const SymmetricArray<BatchEntry> entries(world, 8);
  test.write(words.data() + 2, std::vector<std::byte>(sizeof(std::uint64_t), std::byte{1}));
  world.barrier();
  const GoneArguments arguments{
      gone, bytes.data(), words.data(), entries.data(), static_cast<std::uint32_t>(test.ahead(1)), queues.channel()};
  check_error(Status::invalid_argument,
              {"rank " + std::to_string(test.rank()) + "'s engine refused command 1", "entry 2"},
              [&] { test.run(test.shape(1, false), GoneKernel{}, arguments, "a batch to memory that is gone"); });
  test.check_report("a batch to memory that is gone");
  world.barrier();
  BEELINE_CHECK_EQ(std::size_t{1}, queues.refusals().size());
  BEELINE_CHECK_CONTAINS(queues.refusals().front(), "no memory of its peer is there");
  BEELINE_CHECK_EQ(std::uint64_t{0}, test.read_value(words.data()));  // no earlier entry has taken effect
  BEELINE_CHECK_EQ(std::uint64_t{0}, test.read_value(words.data() + 1));
  BEELINE_CHECK(!world.failed());
  world.barrier();
}

/// A segment is freed while an engine carries out batches: each batch is carried out or refused as a whole.
BEELINE_CASE(post, batches_to_memory_that_is_freed_in_flight, 2) {
  World& world = test.world();
  need_one_node(test);
  test.skip_if(test.on_gpu(), "CPU threads of GPU ranks post no commands");
  constexpr std::uint32_t puts = 64, batches = 16;
  constexpr std::size_t pitch = most_batched_bytes;
  CommandQueues queues(world, 1);
  const SymmetricArray<std::byte> source(world, puts * pitch);
  const SymmetricArray<BatchEntry> entries(world, puts * batches);
  const Segment& segment = world.create_segment(MemoryKind::host, puts * pitch);
  std::byte* const part = segment.parts[static_cast<std::size_t>(test.rank())].address;
  world.barrier();
  const Context& ctx = world.host_context();
  const CommandQueue queue = queues.channel().queue(0);
  PutBatch batch(ctx, entries.data(), puts * batches);
  for (std::uint32_t i = 0; i < batches; ++i) {
    batch.begin(Thread{}, static_cast<std::uint32_t>(test.ahead(1)), queue);
    for (std::uint32_t put = 0; put < puts; ++put)
      batch.put(Thread{}, part + put * pitch, static_cast<const std::byte*>(source.data()) + put * pitch, pitch);
    BEELINE_CHECK_EQ(name(Status::ok), name(batch.end(Thread{})));
  }
  world.destroy_segment(segment.id);
  const Status status = quiet(Thread{}, ctx, queue);
  const std::vector<std::string> refusals = queues.refusals();
  BEELINE_CHECK_EQ(name(refusals.empty() ? Status::ok : Status::invalid_argument), name(status));
  for (const std::string& refusal : refusals) BEELINE_CHECK_CONTAINS(refusal, "no memory of its peer is there");
  if (!refusals.empty())
    check_error(Status::invalid_argument, {"engine refused command"}, [&] { world.synchronize(); });
  BEELINE_CHECK(!world.failed());
  world.barrier();
}

/// The engine of a host rank refuses to write to a GPU of its node, whose memory its process may have mapped. A GPU of
/// another node writes what arrives itself.
BEELINE_CASE(post, host_ranks_put_nothing_to_gpus, 2) {
  World& world = test.world();
  test.skip_if(!world.mixed(), "all ranks are of one kind");
  CommandQueues queues(world, 1);
  constexpr std::size_t most = 4;
  const SymmetricArray<std::uint64_t> words(world, most * static_cast<std::size_t>(test.size()));
  std::uint64_t* const mine = words.data() + most * static_cast<std::size_t>(test.rank());
  const std::vector<std::uint64_t> sent(most, 1000 + static_cast<std::uint64_t>(test.rank()));
  int gpu = 0;
  while (!test.on_gpu(gpu)) ++gpu;
  world.copy(mine, sent.data(), sizeof(std::uint64_t) * most);
  world.barrier();
  if (!test.on_gpu()) {
    const bool is_refused = test.on_one_node(test.rank(), gpu);
    const CommandQueue queue = queues.channel().queue(0);
    const auto peer = static_cast<std::uint32_t>(gpu);
    for (const std::size_t count : {std::size_t{1}, most})
      BEELINE_CHECK_EQ(name(Status::ok),
                       name(post_put(Thread{}, world.host_context(), mine, mine, count, peer, queue)));
    BEELINE_CHECK_EQ(name(is_refused ? Status::invalid_argument : Status::ok),
                     name(quiet(Thread{}, world.host_context(), queue)));
    for (const std::string& refusal : queues.refusals()) BEELINE_CHECK_CONTAINS(refusal, "it is memory of a GPU");
    if (is_refused) check_error(Status::invalid_argument, {"engine refused command"}, [&] { world.synchronize(); });
  }
  BEELINE_CHECK(!world.failed());
  world.barrier();
  for (int sender = 0; sender < test.size() && test.rank() == gpu; ++sender) {
    const bool has_arrived = test.on_gpu(sender) ? sender == gpu : !test.on_one_node(sender, gpu);
    BEELINE_CHECK_EQ(has_arrived ? 1000 + static_cast<std::uint64_t>(sender) : 0,
                     test.read_value(words.data() + most * static_cast<std::size_t>(sender) + most - 1));
  }
  world.barrier();
}

struct KnownArguments {
  std::byte *destination, *source;
  std::uint64_t* signal;
  std::size_t bytes;
  std::uint32_t peer, sender;
  CommandQueuesView channel;
};
struct KnownKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, KnownArguments a) const {
    if (grid.thread_rank() != 0) return;
    const CommandQueue queue = a.channel.queue(0);
    const std::size_t half = a.bytes / 2;
    BEELINE_DEVICE_CHECK_EQ(
        report, Status::ok,
        post_put(Thread{}, ctx, a.destination, a.source, half, a.peer, queue, Timeout::none(), SourceKind::readable));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                            post_put_signal(Thread{}, ctx, a.destination + half, a.source + half, a.bytes - half,
                                            a.signal, 1, a.peer, queue, Timeout::none(), SourceKind::readable));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(Thread{}, ctx, a.signal, Compare::equal, 1, a.sender));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, quiet(Thread{}, ctx, queue));
  }
};

/// Neither the engine nor the network queries the system about memory that the poster asserts to be readable.
POST_CASE(puts_of_known_sources, 1) {
  World& world = test.world();
  need_reach(test, world);
  constexpr std::size_t bytes = 150'001;
  CommandQueues queues(world, 1, {.engine = engine});
  const ForeignMemory source(test, bytes);
  const SymmetricArray<std::byte> destination(world, bytes);
  const Signals signal(world, 1);
  test.write(source.data(), sent_by(test.rank(), 1, bytes));
  world.barrier();
  test.run(
      test.shape(1, true), KnownKernel{},
      KnownArguments{destination.data(), source.data(), signal.data(), bytes, static_cast<std::uint32_t>(test.ahead(1)),
                     static_cast<std::uint32_t>(test.behind(1)), queues.channel()},
      "puts of known sources");
  check_bytes(sent_by(test.behind(1), 1, bytes), test.read(destination.data(), bytes), "known source");
  world.barrier();
}

}  // namespace

}  // namespace beeline_test::batch_cases
