// SPDX-License-Identifier: Apache-2.0
// Members whose calls on one channel differ: each operation by each algorithm with one argument changed, short and long
// vectors, members that wait for each other in that call and members that only send. Then all members make further
// equal calls. No member completes these: each gets an error that names both members and both calls. (Calls by copy
// engines are in collective_calls_test.cpp: the rest of several such calls may outlast the failure of a world.)
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "beeline/beeline.hpp"
#include "tests/support/check.hpp"
#include "tests/support/random.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/split_nodes.hpp"

namespace beeline_test::different_collectives_test {

namespace {

using namespace beeline;

constexpr std::size_t most_elements = 1001;

struct ChannelCall {
  Operation operation = Operation::allreduce;
  Algorithm algorithm = Algorithm::automatic;
  ElementType type = ElementType::int32;
  Reduction reduction = Reduction::sum;
  int root = 0;
  std::size_t count = 8;
  unsigned blocks = 1;

  [[nodiscard]] bool is_barrier() const { return operation == Operation::barrier; }
  [[nodiscard]] bool is_varied() const { return operation == Operation::alltoallv; }
  [[nodiscard]] bool reduces() const { return !is_barrier() && find_shape(operation)->reduces; }

  /// Makes the call, which waits only for room in the channel.
  void make(Collectives& channel, std::int32_t* memory) const {
    const CollectiveCall how{.algorithm = algorithm, .blocks = blocks};
    std::int32_t* const to = memory + memory_elements(channel.team()) / 2;
    const auto members = static_cast<std::size_t>(channel.team().size());
    if (is_barrier()) return channel.barrier_on_stream({.algorithm = algorithm});
    if (is_varied()) {
      const std::vector<std::size_t> counts(members, count);
      std::vector<std::size_t> offsets;
      for (std::size_t member = 0; member < members; ++member) offsets.push_back(member * count);
      return channel.alltoallv_on_stream(to, memory, {counts, offsets, counts, offsets}, type, how);
    }
    channel.call_on_stream({.operation = operation,
                            .element = {type},
                            .reduction = reduction,
                            .root = static_cast<std::uint32_t>(root),
                            .count = count},
                           to, memory, how);
  }

  /// Elements of memory that the call's vectors need.
  [[nodiscard]] static std::size_t memory_elements(const Team& team) {
    return 2 * most_elements * static_cast<std::size_t>(team.size());
  }

  /// The call's name in errors.
  [[nodiscard]] std::string words() const {
    const std::string by = join(" by ", name(algorithm));
    if (is_barrier()) return "barrier" + by;
    return join(name(operation), "(", reduces() ? join(name(reduction), ", ") : std::string(), name(type),
                is_varied() ? std::string() : join(", ", count, count == 1 ? " element" : " elements"),
                detail::has_root(operation) ? join(", root ", root) : std::string(), ")", by);
  }
};

/// The call that all members make before and after those that differ.
constexpr ChannelCall usual_call{};

/// A member makes `other` where rank 0 makes `first`.
struct Pair {
  ChannelCall first, other;
};

/// Every operation that these ranks have on streams, by every algorithm.
std::vector<ChannelCall> calls_of(Team& team) {
  std::vector<ChannelCall> calls;
  for (const MethodRow& row : method_rows)
    if (row.operation >= Operation::broadcast && row.is_by(Control::stream) &&
        row.algorithm != Algorithm::copy_engine && reason_against(team, row.algorithm).empty())
      calls.push_back({row.operation, row.algorithm});
  calls.push_back(
      {Operation::barrier, team.world().config().split_nodes > 1 ? Algorithm::across_nodes : Algorithm::alltoall});
  return calls;
}

/// Pairs of `call` and each call that differs from it in one argument.
///   next  another operation, or the same by another algorithm
std::vector<Pair> pairs_of(const ChannelCall& call, const ChannelCall& next) {
  ChannelCall usual = usual_call;
  usual.count = 5;
  std::vector<Pair> pairs = {{call, next}, {call, usual}};
  const auto add = [&](auto change) { change(pairs.emplace_back(call, call)); };
  if (call.is_barrier()) return pairs;
  add([](Pair& pair) { pair.other.type = ElementType::float32; });
  if (!call.is_varied()) add([](Pair& pair) { ++pair.other.count; });
  if (!call.is_varied()) add([](Pair& pair) { pair.other.count = 0; });
  if (call.reduces()) add([](Pair& pair) { pair.other.reduction = Reduction::maximum; });
  if ((info_of(call.algorithm).needs & needs::several_nodes) == 0) add([](Pair& pair) { pair.other.blocks = 2; });
  if (detail::has_root(call.operation)) {
    add([](Pair& pair) { pair.other.root = 1; });  // of two members, each is the root
    add([](Pair& pair) { pair.first.root = 1; });  // of two members, neither is
  }
  return pairs;
}

/// Which calls members make after those that differ.
enum class Then { usual, same_again };

/// Where the vectors of calls are; those outside the heap may be staged.
enum class Where { heap, elsewhere };

/// Whether the world is used again after the error.
enum class After { goes_on, ends };

/// The last member makes `pair.other` where the others make `pair.first`.
void expect_found(World& world, const Pair& pair, Then then, Where where, After after) {
  const SymmetricArray<std::int32_t> in_heap(world, ChannelCall::memory_elements(world));
  std::vector<std::int32_t> elsewhere(ChannelCall::memory_elements(world));
  std::int32_t* const memory = where == Where::heap ? in_heap.data() : elsewhere.data();
  Collectives channel(world, {.sessions = 2, .packet_bytes = 64, .staging_bytes = 1024});
  usual_call.make(channel, memory);
  world.synchronize();
  world.barrier();  // no member is still in the successful call
  const ChannelCall& mine = world.rank() == world.size() - 1 ? pair.other : pair.first;
  const std::uint64_t start = machine::clock_ns(), soon = static_cast<std::uint64_t>(world.config().deadline_ns) / 2;
  std::string error;
  try {
    mine.make(channel, memory);
    if (then == Then::same_again)
      for (int i = 0; i < 3; ++i) mine.make(channel, memory);
    usual_call.make(channel, memory);  // all wait for all
    world.synchronize();
    error = "no error";
  } catch (const Error& caught) {
    error = caught.what();
  }
  const std::string difference = join("\"", pair.first.words(), "\" beside \"", pair.other.words(), "\": ");
  if (machine::clock_ns() - start > soon) throw CheckFailure(difference + "only after the deadline: " + error);
  const auto has = [&](const std::string& part) { return error.find(part) != std::string::npos; };
  const auto names = [&](const ChannelCall& call) {
    return call.algorithm == Algorithm::automatic || has(call.words());
  };
  // A member that has received data of an earlier call names that call and its own.
  const bool names_calls = has("but has got data of another call") ? names(pair.first) || names(pair.other)
                                                                   : names(pair.first) && names(pair.other);
  if (!names_calls || !has(join("rank ", world.size() - 1)) || !has("members make the same calls in the same order"))
    throw CheckFailure(difference + error);
  // In a world that works again the channel's destructor frees memory.
  if (after == After::goes_on) {
    BEELINE_CHECK_EQ(world.size(), world.survivors().size());
    return;
  }
  try {
    static_cast<void>(world.survivors());  // until the others have got their errors
  } catch (const Error&) {                 // another member has found the difference, too, and aborted the world late
  }
}

/// Checks one in `step` of the pairs; the seed chooses which, since an error takes 50 ms.
void expect_all_found(World& world, std::size_t step) {
  Random random("pairs of calls");
  const std::size_t first = random.below(step);
  const std::vector<ChannelCall> calls = calls_of(world);
  std::size_t number = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    ChannelCall call = calls[i], next = calls[(i + 1) % calls.size()];
    call.count = next.count = i % 2 == 0 ? 8 : most_elements - 1;  // one round of packets, or many
    for (const Pair& pair : pairs_of(call, next))
      for (const Then then : {Then::usual, Then::same_again})
        for (const Where where : {Where::heap, Where::elsewhere})
          if (number++ % step == first) expect_found(world, pair, then, where, After::goes_on);
  }
}

Config config_of_cpus() {
  Config config = test_config();
  config.device = "cpu";
  return config;
}

TEST(DifferentCollectives, OfTwoMembersAreFound) {
  expect_all_passed(run_ranks(
      WorldKind::threads, 2, [](World& world) { expect_all_found(world, 29); }, config_of_cpus(), 60));
}

TEST(DifferentCollectives, OfThreeMembersAreFound) {
  expect_all_passed(run_ranks(
      WorldKind::threads, 3, [](World& world) { expect_all_found(world, 59); }, config_of_cpus(), 60));
}

/// Each has a world of its own: both members may find the difference at the same time, and one then aborts late.
TEST(DifferentCollectives, AcrossNodesAreFound) {
  SKIP_WITHOUT_UCX();
  const ChannelCall broadcast{.operation = Operation::broadcast, .algorithm = Algorithm::across_nodes};
  const ChannelCall reduce{.operation = Operation::reduce, .algorithm = Algorithm::across_nodes};
  ChannelCall from_other = broadcast, longer = reduce, to_other = reduce, two_shots = reduce;
  from_other.root = 1, longer.count = 1000, to_other.root = 1, two_shots.algorithm = Algorithm::two_shot_across_nodes;
  const Pair both_send{broadcast, from_other}, neither_sends{from_other, broadcast}, counts{reduce, longer},
      neither_receives{to_other, reduce}, operations{broadcast, reduce}, algorithms{two_shots, reduce};
  for (const Pair& pair : {both_send, neither_sends, counts, neither_receives, operations, algorithms})
    expect_all_passed(run_ranks(
        WorldKind::processes, 2,
        [&](World& world) { expect_found(world, pair, Then::same_again, Where::heap, After::ends); }, split_config(),
        60));
}

/// Makes calls at the same time, each on a thread of its own; each starts shortly after the previous one.
void on_threads(std::vector<std::function<void()>> calls) {
  std::vector<std::future<void>> made;
  for (const auto& call : calls) {
    made.push_back(std::async(std::launch::async, call));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  for (auto& each : made) each.get();
}

/// Two objects: rank 0 begins with one and rank 1 with the other.
void expect_independent(World& world) {
  const SymmetricArray<float> first(world, 1000), second(world, 1000);
  Collectives one(world), other(world);
  const std::vector<float> ones(1000, 1);
  for (const auto* const vector : {&first, &second}) world.copy(vector->data(), ones.data(), vector->bytes());
  std::vector<std::function<void()>> calls = {[&] { one.allreduce(first); }, [&] { other.allreduce(second); }};
  if (world.rank() == 1) std::swap(calls[0], calls[1]);
  on_threads(calls);
  std::vector<float> sums(1000);
  for (const auto* const vector : {&first, &second}) {
    world.copy(sums.data(), vector->data(), vector->bytes());
    BEELINE_CHECK_EQ(static_cast<float>(world.size()), sums[999]);
  }
}

TEST(ConcurrentCollectives, OfTwoObjectsDoNotWaitForEachOther) {
  expect_all_passed(run_ranks(WorldKind::threads, 2, expect_independent, config_of_cpus(), 60));
}

TEST(ConcurrentCollectives, OfTwoObjectsAcrossNodesDoNotWaitForEachOther) {
  SKIP_WITHOUT_UCX();
  expect_all_passed(run_ranks(WorldKind::processes, 2, expect_independent, split_config(), 60));
}

/// Two threads of rank 0 call one object. One waits for rank 1, which comes after the other was refused.
TEST(ConcurrentCollectives, OfOneObjectAreRefused) {
  std::promise<void> refused;
  expect_all_passed(run_ranks(
      WorldKind::threads, 2,
      [&](World& world) {
        Collectives channel(world);
        if (world.rank() == 1) {
          refused.get_future().wait();
          channel.barrier();
          return;
        }
        const auto call = [&] {
          try {
            channel.barrier();
          } catch (const Error& error) {
            refused.set_value();
            BEELINE_CHECK(error.code() == Status::invalid_argument);
            BEELINE_CHECK_CONTAINS(error.what(),
                                   "barrier by alltoall while barrier by alltoall of another thread uses");
          }
        };
        on_threads({call, call});
      },
      config_of_cpus(), 60));
}

/// A call on a stream is pending while both ranks make calls on another object.
TEST(ConcurrentCollectives, GoOnBesideACallOnAStream) {
  expect_passed_on_cpus(2, [](World& world) {
    const SymmetricArray<float> vector(world, 1000);
    Collectives one(world), other(world);
    const std::unique_ptr<Stream> stream = world.make_stream();
    const std::unique_ptr<Event> end = stream->make_event();
    if (world.rank() == 0) {
      one.allreduce(vector, Reduction::sum, {.stream = stream.get()});
      stream->record(*end);
      other.barrier();
      BEELINE_CHECK(!end->done());
      other.barrier();
      world.synchronize(*end);
    } else {
      other.barrier();
      other.barrier();
      one.allreduce(vector);
    }
  });
}

}  // namespace

}  // namespace beeline_test::different_collectives_test
