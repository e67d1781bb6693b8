// SPDX-License-Identifier: Apache-2.0
// Memory of a rank on another node that is freed before data for it arrive: its owner refuses them, and nothing else is
// written.
#include <gtest/gtest.h>

#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "beeline/beeline.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/split_nodes.hpp"
#include "tests/support/stopwatch.hpp"

namespace beeline_test::freed_memory_test {

namespace {

using namespace beeline;
using namespace std::chrono_literals;

constexpr const char* is_gone = "no memory of its peer is there (any more)";

void put_to_freed_memory(World& world, std::uint64_t* place, bool in_batch) {
  const Context& ctx = world.host_context();
  BatchEntry entries[2];
  PutBatch batch(ctx, entries, 2);
  if (in_batch) {
    batch.begin(Thread{}, 1);
    batch.put(Thread{}, place, &ctx.deadline_ns, 1);
    batch.signal(Thread{}, place + 1, 1);
    static_cast<void>(batch.end(Thread{}));
  } else {
    put_value(ctx, place, std::uint64_t{7}, 1);
  }
  static_cast<void>(quiet(Thread{}, ctx));
}

class FreedMemory : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(In, FreedMemory, ::testing::Bool(),
                         [](const auto& each) { return each.param ? "batch" : "put"; });

TEST_P(FreedMemory, IsRefusedByItsOwner) {
  SKIP_WITHOUT_UCX();
  const auto outcomes = run_ranks(
      WorldKind::processes, 2,
      [in_batch = GetParam()](World& world) {
        const Segment segment = world.create_segment(MemoryKind::host, 4096);
        auto* const place =
            reinterpret_cast<std::uint64_t*>(segment.parts[static_cast<std::size_t>(world.rank())].address);
        world.destroy_segment(segment.id);
        const auto use = [&] {
          world.barrier();
          if (world.rank() == 0) put_to_freed_memory(world, place, in_batch);
          world.barrier();
        };
        try {
          use();
          throw CheckFailure("no error");
        } catch (const Error& error) {
          const char* const named = in_batch ? "batch of 2 entries, rank 1" : "store of 8 bytes";
          BEELINE_CHECK_CONTAINS(error.what(), join("rank 1's engine refused: ", named));
          BEELINE_CHECK_CONTAINS(error.what(), join("of rank 0: ", in_batch ? "entry 0 (put_inline of 8 bytes" : ""));
          BEELINE_CHECK_CONTAINS(error.what(), "no memory of its peer is there (any more)");
        }
      },
      split_config());
  for (const RankOutcome& outcome : outcomes) EXPECT_TRUE(outcome.passed()) << outcome.failure;
}

constexpr std::size_t words = 512;  ///< more than fit the slot of a task
constexpr double deadline_s = 5;

/// Adds the bytes of its payload to the object. It does not load the payload, which may be unmapped while it runs.
struct CountPayload {
  static constexpr const char* name = "count_payload";
  struct Arguments {};
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context&, const Task& task) const {
    if (group.thread_rank() == 0) *static_cast<std::uint64_t*>(task.object) += task.payload_bytes;
  }
};
using PayloadTasks = TaskList<CountPayload>;

/// Objects of the ways to write to another node.
struct Writers {
  explicit Writers(World& of) : world(of) {}

  World& world;
  SymmetricArray<std::uint64_t> source{world, words}, sum{world, 1};
  CommandQueues queues{world}, device_queues{world, 1, {.engine = EngineKind::device}};
  Triggers engine{world};
  Triggers guarded{world, {.by = TriggeredBy::guarded_stream}};
  Triggers streams{world, {.by = TriggeredBy::stream}};
  Tasks<PayloadTasks> tasks{world, {.queues = 1, .depth = 2, .workers = 1}};
};

using Refusals = std::vector<std::string>;

void post(Writers& use, const CommandQueues& queues, std::uint64_t* place) {
  const CommandQueue queue = queues.channel().queue(0);
  const Context& ctx = use.world.host_context();
  BEELINE_CHECK(post_put(Thread{}, ctx, place, use.source.data(), words, 1, queue) == Status::ok);
}
void fire(Writers& use, Triggers& triggers, std::uint64_t* place) {
  const auto put = TriggeredOperation::put(place, use.source.data(), words, 1);
  static_cast<void>(triggers.arm(put, {.tag = 0, .threshold = triggers.count(0) + 1}));
  triggers.trigger(0);
}
void post_task_with_payload(Writers& use, std::uint64_t*) {
  TaskPost task = task_of<PayloadTasks, CountPayload>({}, 1);
  task.payload = use.source.data(), task.payload_bytes = use.source.bytes();
  BEELINE_CHECK(post_task(Thread{}, use.world.host_context(), use.tasks.channel(), task) == Status::ok);
}
/// What ended the world.
Refusals failure_of(Writers& use) {
  try {
    use.world.check();
  } catch (const Error& error) {
    return {error.what()};
  }
  return {};
}

/// Memory of the ranks, made and freed by both.
enum class Kind { segment, array };

/// A way in which rank 0 writes to `place` at rank 1, without a wait for the data.
struct Way {
  const char* name;
  void (*write)(Writers& use, std::uint64_t* place);
  Refusals (*refusals)(Writers& use);
  bool is_queue = false;  ///< otherwise a refusal by the target ends the world
  bool has_payload = false;
  Kind kind = Kind::segment;
};
const Way ways[] = {
    {"CommandQueue", [](Writers& use, std::uint64_t* place) { post(use, use.queues, place); },
     [](Writers& use) { return use.queues.refusals(); }, true},
    {"DeviceEngine", [](Writers& use, std::uint64_t* place) { post(use, use.device_queues, place); },
     [](Writers& use) { return use.device_queues.refusals(); }, true},
    {"TriggerByEngine", [](Writers& use, std::uint64_t* place) { fire(use, use.engine, place); },
     [](Writers& use) { return use.engine.refusals(); }, true},
    {"TriggerByGuardedStream", [](Writers& use, std::uint64_t* place) { fire(use, use.guarded, place); }, failure_of},
    {"TriggerByStream", [](Writers& use, std::uint64_t* place) { fire(use, use.streams, place); }, failure_of},
    {"Task", post_task_with_payload, failure_of, false, true},
};
std::vector<Way> all_ways() {
  std::vector<Way> all(std::begin(ways), std::end(ways));
  for (Way way : ways) {
    way.kind = Kind::array;
    if (!way.has_payload) all.push_back(way);  // a function loads its payload from an address of its own rank
  }
  return all;
}

/// Whether the owner of the memory has refused the data. A task may be refused instead, if its payload came in time.
void check_refusal(const Way& way, const std::string& text) {
  if (!way.has_payload || text.find("is not registered on the rank that was to run it") == std::string::npos)
    BEELINE_CHECK_CONTAINS(text, is_gone);
}

/// Memory of rank 1, which both ranks make and end.
class Freed {
 public:
  Freed(Writers& use, const Way& way) : use_(use), has_payload_(way.has_payload) {
    if (way.kind == Kind::array) {
      array_.emplace(use.world, 2 * words, Distribution{.kind = MemoryKind::host});
      if (use.world.rank() == 0)
        place_ = use.world.symmetric_address(array_->data() + array_->elements_of(1).front().first);
      return;
    }
    bytes_ = has_payload_ ? use.tasks.payload_buffer_bytes(use.source.bytes()) : use.source.bytes();
    segment_ = use.world.create_segment(MemoryKind::host, bytes_);
    place_ = segment_.parts[static_cast<std::size_t>(use.world.rank())].address;
    if (has_payload_) use.tasks.register_function<CountPayload>({use.sum.data(), place_, bytes_, nullptr});
  }
  [[nodiscard]] std::uint64_t* place() const { return static_cast<std::uint64_t*>(place_); }
  void free() {
    if (has_payload_) use_.tasks.unregister_function(0);
    if (array_)
      array_.reset();
    else
      use_.world.destroy_segment(segment_.id);
  }

 private:
  Writers& use_;
  const bool has_payload_;
  std::size_t bytes_ = 0;
  std::optional<DistributedArray<std::uint64_t>> array_;
  Segment segment_;
  void* place_ = nullptr;
};

/// Waits for a refusal while data may be in flight.
Refusals await_refusals(const Way& way, Writers& use) {
  for (const Stopwatch stopwatch; stopwatch.seconds() < 0.1; std::this_thread::sleep_for(1ms))
    if (const Refusals found = way.refusals(use); !found.empty()) return found;
  return {};
}

/// Writes to memory that is freed meanwhile, until the data come too late for it.
void write_to_freed_memory(const Way& way, Writers& use) {
  const bool writes = use.world.rank() == 0;
  Refusals found;
  for (int attempt = 0; attempt < 40 && found.empty(); ++attempt) {
    Freed memory(use, way);
    if (writes) way.write(use, memory.place());
    memory.free();
    if (writes) found = await_refusals(way, use);
    if (use.world.allreduce(found.size()) != 0) break;
  }
  for (const std::string& each : found) check_refusal(way, each);
  BEELINE_CHECK(way.is_queue && found.size() == (writes ? 1u : 0u));  // otherwise the world has ended
}

class FreedInFlight : public ::testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(By, FreedInFlight, ::testing::ValuesIn(all_ways()), [](const auto& way) {
  return join(way.param.name, way.param.kind == Kind::array ? "ToDistributedArray" : "");
});

/// Messages of rank 0 are late, so that memory may be gone when data for it arrive. No wait lasts until its deadline.
TEST_P(FreedInFlight, IsRefusedByItsOwner) {
  SKIP_WITHOUT("sockets");
  expect_all_passed(run_processes(
      2,
      [](const Config& config) {
        Config own = config;
        if (own.rank == 0) own.transports += ":delay_us=10000";
        const std::unique_ptr<World> world = World::create(own);
        const Way& way = GetParam();
        std::optional<Writers> use(std::in_place, *world);
        try {
          write_to_freed_memory(way, *use);
        } catch (const Error& error) {
          BEELINE_CHECK(!way.is_queue);
          check_refusal(way, error.what());
        }
        const Stopwatch stopwatch;
        use.reset();
        BEELINE_CHECK(stopwatch.seconds() < deadline_s / 2);
      },
      split_config(static_cast<std::int64_t>(deadline_s * 1e9), "sockets")));
}

}  // namespace

}  // namespace beeline_test::freed_memory_test
