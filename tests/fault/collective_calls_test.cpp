// SPDX-License-Identifier: Apache-2.0
// Collectives that fail: a rank that does not call, ranks in different calls, two calls at once on one channel. Each
// ends with an error that names ranks and calls; the survivors continue with channels of their own.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "beeline/beeline.hpp"
#include "beeline/collectives/allreduce.hpp"
#include "beeline/collectives/barrier.hpp"
#include "beeline/collectives/movement.hpp"
#include "beeline/collectives/reduce.hpp"
#include "beeline/host/collectives.hpp"
#include "tests/support/check.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test::collective_calls_test {

namespace {

using namespace beeline;

struct Shape {
  const char* name;
  const char* device;  ///< BEELINE_DEVICE of all ranks
};

class CollectiveCalls : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    std::string why;
    if (std::string(GetParam().device) != "cpu" && gpus_here(&why) == 0) GTEST_SKIP() << "no GPU: " << why;
  }

  /// Runs `body` on three ranks that are threads.
  template <class Body>
  void run(Body body, double deadline_s = 20) {
    Config config = test_config();
    config.device = GetParam().device;
    config.deadline_ns = static_cast<std::int64_t>(deadline_s * 1e9);
    expect_all_passed(run_ranks(WorldKind::threads, 3, body, config));
  }
};

/// What `call` throws.
template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

void expect_part(const std::string& text, const std::string& part) {
  if (text.find(part) == std::string::npos) throw CheckFailure("\"" + part + "\" is not in: " + text);
}

TEST_P(CollectiveCalls, NameTheRankThatDoesNotCome) {
  run(
      [](World& world) {
        Collectives collectives(world);
        const SymmetricArray<float> vector(world, 1000);
        for (const Algorithm algorithm : {Algorithm::ll_one_shot, Algorithm::ll_two_shot, Algorithm::two_shot}) {
          Collectives fresh(world);  // the previous one's rounds were cut off
          if (world.rank() == 1) {
            while (!world.failed()) machine::back_off(0, 0);
          } else {
            const std::string error = error_of([&] {
              fresh.allreduce_on_stream(vector.data(), vector.data(), 1000, ElementType::float32, Reduction::sum,
                                        {.algorithm = algorithm});
              world.synchronize();
            });
            expect_part(error, "collective on rank 1 in allreduce, sequence 1");
          }
          Team& all = world.survivors();
          BEELINE_CHECK_EQ(3, all.size());
        }
      },
      0.5);
}

/// Rank 2 waits only for rank 0, which comes later, and which waits for rank 1 in vain.
TEST_P(CollectiveCalls, NameTheRankThatKeepsAnotherWaiting) {
  run(
      [](World& world) {
        Collectives collectives(world);
        world.barrier();
        if (world.rank() == 1) {
          while (!world.failed()) machine::back_off(0, 0);
        } else {
          const std::uint64_t start = machine::clock_ns();
          while (world.rank() == 0 && machine::clock_ns() - start < 100'000'000) machine::back_off(0, 0);
          const std::string error = error_of([&] {
            collectives.barrier_on_stream({.algorithm = Algorithm::flat});
            world.synchronize();
          });
          const std::string headline = error.substr(0, error.find('\n'));
          const bool is_direct = headline.find("collective on rank 1") != std::string::npos;
          if (!is_direct) expect_part(headline, ", which waits for rank 1");
        }
        BEELINE_CHECK_EQ(3, world.survivors().size());
      },
      0.5);
}

/// Makes a call with `vector`, `count` elements in each half.
using MakeCall = std::function<void(Collectives&, std::int32_t* vector)>;

/// Rank 2 makes `other` where the others make `usual`: well before the deadline all ranks get an error with both.
///   names  the two calls in errors; for calls with longer names, the beginning
void expect_difference(World& world, const MakeCall& usual, const MakeCall& other,
                       const std::array<std::string, 2>& names, const CollectiveOptions& options = {}) {
  const SymmetricArray<std::int32_t> vector(world, 2000);
  Collectives collectives(world, options);
  collectives.allreduce_on_stream(vector.data(), vector.data(), 1000, ElementType::int32, Reduction::sum);
  world.synchronize();
  world.barrier();  // no member is still in the successful call
  const std::uint64_t start = machine::clock_ns(), soon = static_cast<std::uint64_t>(world.config().deadline_ns) / 2;
  const auto is_late = [&] { return machine::clock_ns() - start > soon; };
  const std::string error = error_of([&] {
    (world.rank() == 2 ? other : usual)(collectives, vector.data());
    world.synchronize();
    while (!world.failed() && !is_late()) machine::back_off(0, 0);  // for a member whose part was complete
    world.check();
  });
  BEELINE_CHECK(!is_late());
  const auto both = [&](const std::string& first, const std::string& second) {
    return error.find(" calls " + first) < error.find(", rank ") && error.find(" calls " + second) != std::string::npos;
  };
  if (!both(names[0], names[1]) && !both(names[1], names[0]))
    throw CheckFailure(join("\"", names[0], "\" and \"", names[1], "\" are not in: ", error));
  if (error.starts_with("aborted: ")) expect_part(error, ": because of rank ");  // the launcher quotes its error
  BEELINE_CHECK_EQ(3, world.survivors().size());
}

/// Options in which all-reduces may differ.
struct AllreduceOptions {
  Algorithm algorithm = Algorithm::ll_one_shot;
  ElementType type = ElementType::int32;
  Reduction reduction = Reduction::sum;
  std::size_t count = 100;
  unsigned blocks = 1;

  [[nodiscard]] MakeCall call() const {
    return [*this](Collectives& collectives, std::int32_t* data) {
      const bool has_blocks = algorithm != Algorithm::copy_engine;
      collectives.allreduce_on_stream(data, data, count, type, reduction,
                                      {.algorithm = algorithm, .blocks = has_blocks ? blocks : 0});
    };
  }
  [[nodiscard]] std::string name() const {
    return join("allreduce(", beeline::name(reduction), ", ", beeline::name(type), ", ", count,
                count == 1 ? " element" : " elements", ") by ", beeline::name(algorithm));
  }
};

void expect_difference(World& world, const AllreduceOptions& usual, const AllreduceOptions& other,
                       const CollectiveOptions& options = {}) {
  const bool in_blocks = usual.blocks != other.blocks;
  const auto named = [&](const AllreduceOptions& call) {
    return call.name() + (in_blocks ? join(" in ", call.blocks, " block") : "");
  };
  expect_difference(world, usual.call(), other.call(), {named(usual), named(other)}, options);
}

/// By every algorithm; vectors are used in place or staged.
TEST_P(CollectiveCalls, ThatDifferInOneFieldAreFound) {
  run([](World& world) {
    for (const MethodRow& row : method_rows) {
      if (row.operation != Operation::allreduce || !row.is_by(Control::stream) ||
          !reason_against(world, row.algorithm).empty())
        continue;
      const AllreduceOptions usual{.algorithm = row.algorithm};
      AllreduceOptions other = usual;
      other.reduction = Reduction::maximum;
      expect_difference(world, usual, other);
      other = usual, other.count = 101;
      expect_difference(world, usual, other);
      other = usual, other.count = 0;  // a call with nothing to do
      other.algorithm = usual.algorithm;
      expect_difference(world, usual, other);
      other = usual, other.type = ElementType::float32;
      expect_difference(world, usual, other);
      if (row.algorithm == Algorithm::copy_engine) continue;
      other = usual, other.blocks = 3;
      expect_difference(world, usual, other);
    }
  });
}

/// The algorithms use different memory, in which some members find no data.
TEST_P(CollectiveCalls, ByDifferentAlgorithmsAreFound) {
  run([](World& world) {
    std::vector<Algorithm> here;
    for (const MethodRow& row : method_rows)
      if (row.operation == Operation::allreduce && row.is_by(Control::stream) &&
          reason_against(world, row.algorithm).empty())
        here.push_back(row.algorithm);
    for (std::size_t i = 0; i < here.size(); ++i)  // each beside the next, and beside the first
      for (const Algorithm other : {here[(i + 1) % here.size()], here[0]})
        if (other != here[i]) expect_difference(world, AllreduceOptions{here[i]}, AllreduceOptions{other});
  });
}

/// A call that moves `count` elements of the type by `algorithm`.
struct MoveOptions {
  Operation operation;
  Algorithm algorithm = Algorithm::ll;
  ElementType type = ElementType::int32;
  std::size_t count = 8;
  int root = 0;

  [[nodiscard]] MakeCall call() const {
    return [*this](Collectives& collectives, std::int32_t* data) {
      const CollectiveCall how{.algorithm = algorithm};
      std::int32_t* const to = data + 1000;
      switch (operation) {
        case Operation::broadcast:
          return collectives.broadcast_on_stream(to, data, count, type, root, how);
        case Operation::scatter:
          return collectives.scatter_on_stream(to, data, count, type, root, how);
        case Operation::gather:
          return collectives.gather_on_stream(to, data, count, type, root, how);
        case Operation::allgather:
          return collectives.allgather_on_stream(to, data, count, type, how);
        case Operation::reduce:
          return collectives.reduce_on_stream(to, data, count, type, Reduction::sum, root, how);
        case Operation::reduce_scatter:
          return collectives.reduce_scatter_on_stream(to, data, count, type, Reduction::sum, how);
        case Operation::alltoall:
          return collectives.alltoall_on_stream(to, data, count, type, how);
        default:
          return collectives.call_on_stream(
              {.operation = operation, .element = {type}, .root = static_cast<std::uint32_t>(root), .count = count}, to,
              data, how);
      }
    };
  }
  [[nodiscard]] std::string name() const {
    return join(beeline::name(operation), "(", find_shape(operation)->reduces ? "sum, " : "", beeline::name(type), ", ",
                count, count == 1 ? " element" : " elements",
                detail::has_root(operation) ? join(", root ", root) : std::string(), ") by ", beeline::name(algorithm));
  }
};

/// Every operation by every algorithm, beside the same call with one field changed, and beside the next operation.
TEST_P(CollectiveCalls, OfAllOperationsAreFound) {
  run([](World& world) {
    std::vector<MoveOptions> here;
    for (const MethodRow& row : method_rows)
      if (row.operation >= Operation::broadcast && row.operation != Operation::allreduce &&
          row.operation != Operation::alltoallv && row.is_by(Control::stream) &&
          reason_against(world, row.algorithm).empty())
        here.push_back({row.operation, row.algorithm});
    for (std::size_t i = 0; i < here.size(); ++i) {
      const MoveOptions& usual = here[i];
      std::vector<MoveOptions> others(2, usual);
      others[0].count = 9;
      others[1] = here[(i + 1) % here.size()];
      if (detail::has_root(usual.operation)) others.emplace_back(usual).root = 1;
      for (const MoveOptions& other : others)
        expect_difference(world, usual.call(), other.call(), {usual.name(), other.name()});
    }
  });
}

struct Triple {
  std::int32_t values[3];
};

/// Member 2 calls with elements of three words instead of one.
struct AllgatherOfTriples {
  static constexpr unsigned max_threads = 128;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel,
                                      std::int32_t* data) const {
    Session session(grid.block(), ctx, channel);
    const Status status = ctx.rank == 2 ? allgather(session, reinterpret_cast<Triple*>(data) + 100,
                                                    reinterpret_cast<const Triple*>(data), 1)
                                        : allgather(session, data + 300, data, 3);
    static_cast<void>(status);  // the record says it
  }
};

/// The same number of bytes, of another type.
TEST_P(CollectiveCalls, OfOtherElementsAreFound) {
  run([](World& world) {
    const MoveOptions words{Operation::broadcast, Algorithm::ll, ElementType::int32, 16};
    const MoveOptions doubles{Operation::broadcast, Algorithm::ll, ElementType::float64, 8};
    expect_difference(world, words.call(), doubles.call(), {words.name(), doubles.name()});
    const std::vector<std::size_t> counts(3, 8), offsets = {0, 16, 32};
    const auto exchange = [&](ElementType type) -> MakeCall {
      return [&, type](Collectives& collectives, std::int32_t* data) {
        collectives.alltoallv_on_stream(data, data + 500, {counts, offsets, counts, offsets}, type,
                                        {.algorithm = Algorithm::ll});
      };
    };
    expect_difference(world, exchange(ElementType::int32), exchange(ElementType::float32),
                      {"alltoallv(int32) by ll", "alltoallv(float32) by ll"});
    const MakeCall triples = [&world](Collectives& collectives, std::int32_t* data) {
      launch(world, {.threads = 64, .waits = true}, AllgatherOfTriples{}, collectives.channel(), data);
    };
    expect_difference(world, triples, triples,
                      {"allgather(int32, 3 elements)", "allgather(elements of 12 bytes, 1 element)"});
  });
}

/// Calls in chunks through the channel's memory, and with vectors at different offsets.
TEST_P(CollectiveCalls, ThatAreStagedAreFound) {
  run([](World& world) {
    const CollectiveOptions small{.sessions = 3, .packet_bytes = 64, .staging_bytes = 1024};
    for (const Algorithm algorithm : {Algorithm::ll_one_shot, Algorithm::two_shot, Algorithm::tree, Algorithm::bulk}) {
      AllreduceOptions usual{.algorithm = algorithm, .count = 900};
      AllreduceOptions other = usual;
      other.count = 901;
      expect_difference(world, usual, other, small);
      const MakeCall elsewhere = [&](Collectives& collectives, std::int32_t* data) {
        collectives.allreduce_on_stream(data + 4 * world.rank(), data + 4 * world.rank(), 900, ElementType::int32,
                                        Reduction::minimum, {.algorithm = algorithm, .blocks = 1});
      };
      usual.reduction = Reduction::minimum;
      expect_difference(world, elsewhere, other.call(), {usual.name(), other.name()}, small);
    }
  });
}

/// Calls whose vectors the caller declares symmetric.
TEST_P(CollectiveCalls, AssertedToBeSymmetricAreComparedWithTheirPlaces) {
  run([](World& world) {
    for (const bool asserts : {true, false}) {  // different offsets; or one member does not declare it
      const SymmetricArray<std::int32_t> vector(world, 1000);
      Collectives collectives(world);
      const bool other = world.rank() == 2;
      std::int32_t* const data = vector.data() + (other && asserts ? 4 : 0);
      const std::string error = error_of([&] {
        collectives.allreduce_on_stream(data, data, 16, ElementType::int32, Reduction::sum,
                                        {.algorithm = Algorithm::copy_engine, .symmetric = asserts || !other});
        world.synchronize();
      });
      expect_part(error,
                  "calls allreduce(sum, int32, 16 elements) by copy_engine, which needs vectors at the same place");
      BEELINE_CHECK_EQ(3, world.survivors().size());
    }
  });
}

/// Copies are enqueued before the members know that their calls differ; they must not touch destinations.
TEST_P(CollectiveCalls, ByEnginesTouchNoDestinationWhereTheyDiffer) {
  run([](World& world) {
    constexpr std::size_t count = 10'000;
    const SymmetricArray<std::int32_t> source(world, count), destination(world, count);
    const std::vector<std::int32_t> before(count, -1);
    std::vector<std::int32_t> after(count);
    world.copy(destination.data(), before.data(), count * sizeof(std::int32_t));
    Collectives collectives(world, {.engine_bytes = 40'960});
    const std::string error = error_of([&] {
      collectives.allreduce_on_stream(destination.data(), source.data(), count, ElementType::int32,
                                      world.rank() == 2 ? Reduction::maximum : Reduction::sum,
                                      {.algorithm = Algorithm::copy_engine});
      world.synchronize();
    });
    expect_part(error, "calls allreduce(sum, int32, 10000 elements) by copy_engine");
    BEELINE_CHECK_EQ(3, world.survivors().size());
    world.copy(after.data(), destination.data(), count * sizeof(std::int32_t));
    BEELINE_CHECK(after == before);
  });
}

/// Member 2 reduces where the others enter a barrier.
struct BarrierOrAllreduce {
  static constexpr unsigned max_threads = 128;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel,
                                      std::int32_t* data) const {
    Session session(grid.block(), ctx, channel);
    const Status status = ctx.rank == 2
                              ? allreduce(session, data, data, 8, Reduction::sum, {.algorithm = Algorithm::ll_one_shot})
                              : barrier(session, {.algorithm = Algorithm::flat});
    static_cast<void>(status);  // the record says it
  }
};

TEST_P(CollectiveCalls, BarriersThatMeetOthersAreFound) {
  run([](World& world) {
    const auto barrier_by = [](Algorithm algorithm) -> MakeCall {
      return [=](Collectives& collectives, std::int32_t*) { collectives.barrier_on_stream({.algorithm = algorithm}); };
    };
    constexpr std::array had = {Algorithm::alltoall, Algorithm::flat, Algorithm::dissemination,
                                Algorithm::hierarchical};
    for (std::size_t i = 0; i < had.size(); ++i) {
      const Algorithm algorithm = had[i], next = had[(i + 1) % had.size()];
      const std::string by = join("barrier by ", name(algorithm));
      expect_difference(world, barrier_by(algorithm), barrier_by(next), {by, join("barrier by ", name(next))});
      expect_difference(world, barrier_by(algorithm), AllreduceOptions{}.call(), {by, AllreduceOptions{}.name()});
    }
    const MakeCall in_kernels = [&world](Collectives& collectives, std::int32_t* data) {
      launch(world, {.threads = 64, .waits = true}, BarrierOrAllreduce{}, collectives.channel(), data);
    };
    expect_difference(world, in_kernels, in_kernels,
                      {"allreduce(sum, int32, 8 elements) by ll_one_shot", "barrier by flat"});
  });
}

enum class Caller : std::uint32_t { group, grid };

/// Calls a collective with a root; the status is stored where no other rank writes.
struct RootedCall {
  Operation operation;
  Caller caller;
  std::uint32_t root;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CollectiveChannel channel, std::int32_t* data,
                                      std::uint32_t* returned) const {
    const Status status = by_caller(grid, ctx, channel, data);
    if (grid.thread_rank() == 0) *returned = static_cast<std::uint32_t>(status);
  }

 private:
  template <class Grid>
  BEELINE_HOST_DEVICE Status by_caller(Grid& grid, const Context& ctx, const CollectiveChannel& channel,
                                       std::int32_t* data) const {
    if (caller == Caller::grid) {
      Session session(grid, ctx, channel);
      return by_operation(data, session);
    }
    Session session(grid.block(), ctx, channel);
    return by_operation(data, session);
  }
  template <class Group>
  BEELINE_HOST_DEVICE Status by_operation(std::int32_t* data, Session<Group>& session) const {
    switch (operation) {
      case Operation::broadcast:
        return broadcast(session, data + 100, data, 8, root);
      case Operation::scatter:
        return scatter(session, data + 100, data, 8, root);
      case Operation::gather:
        return gather(session, data + 100, data, 8, root);
      default:
        return reduce(session, data + 100, data, 8, Reduction::sum, root);
    }
  }
};

/// Rank 1 passes a root that is no member, the others rank 0: all get the error, and rank 1 has received nothing.
void expect_root_refused(World& world, const RootedCall& good, std::uint32_t bad_root) {
  const SymmetricArray<std::int32_t> data(world, 200);
  const SymmetricArray<std::uint32_t> returned(world, 1);
  const std::vector<std::int32_t> before(200, 10 + world.rank());
  world.copy(data.data(), before.data(), data.bytes());
  Collectives collectives(world);
  RootedCall call = good;
  if (world.rank() == 1) call.root = bad_root;
  const std::string error = error_of([&] {
    launch(world, {.threads = 64, .waits = true}, call, collectives.channel(), data.data(), returned.data());
    world.synchronize();
    world.barrier();  // for a member whose part was complete
  });
  expect_part(error, join("rank 1: ", name(call.operation),
                          " in kernel beeline_test::collective_calls_test::RootedCall refused: root ", bad_root,
                          " is no rank of the team: these are 0 to 2"));
  BEELINE_CHECK_EQ(3, world.survivors().size());
  if (world.rank() != 1) return;
  std::vector<std::int32_t> now(200);
  std::uint32_t status = 0;
  world.copy(now.data(), data.data(), data.bytes());
  world.copy(&status, returned.data(), sizeof status);
  BEELINE_CHECK(now == before);
  BEELINE_CHECK_EQ(static_cast<std::uint32_t>(Status::invalid_argument), status);
}

TEST_P(CollectiveCalls, OfKernelsRefuseRootsThatAreNoMembers) {
  run([](World& world) {
    for (const auto operation : {Operation::broadcast, Operation::scatter, Operation::gather, Operation::reduce}) {
      for (const Caller caller : {Caller::group, Caller::grid}) expect_root_refused(world, {operation, caller, 0}, 99);
      expect_root_refused(world, {operation, Caller::group, 0}, 3);       // the first rank that is no member
      expect_root_refused(world, {operation, Caller::grid, 0}, no_peer);  // plans have it for operations without a root
    }
  });
}

/// Rank 2 expects `expected` elements from rank 0, which sends `sent`; all other lengths agree. All get the error.
void expect_lengths_found(World& world, const CollectiveCall& how, std::size_t sent, std::size_t expected) {
  Collectives collectives(world, {.sessions = 3, .packet_bytes = 32, .staging_bytes = 2048});
  const SymmetricArray<std::int32_t> vectors(world, 6000);
  std::vector<std::size_t> send(3, 7), receive(3, 7);
  const std::vector<std::size_t> offsets = {0, 1000, 2000};
  if (world.rank() == 0) send[2] = sent;
  if (world.rank() == 2) receive[0] = expected;
  world.barrier();
  const std::string error = error_of([&] {
    collectives.alltoallv_on_stream(vectors.data(), vectors.data() + 3000, {send, offsets, receive, offsets},
                                    ElementType::int32, how);
    world.synchronize();
    while (!world.failed()) machine::back_off(0, 0);  // for a member whose part was right
    world.check();
  });
  expect_part(error, join("rank 0 sends ", 4 * sent, " bytes to rank 2, which expects ", 4 * expected));
  BEELINE_CHECK_EQ(3, world.survivors().size());
}

TEST_P(CollectiveCalls, LengthsThatDoNotFitAreFound) {
  run([](World& world) {
    for (const Algorithm algorithm : {Algorithm::ll, Algorithm::peer, Algorithm::bulk})
      expect_lengths_found(world, {.algorithm = algorithm, .blocks = 3}, 5, 900);
    expect_lengths_found(world, {.algorithm = Algorithm::ll}, 900, 0);
    expect_lengths_found(world, {.algorithm = Algorithm::peer}, 0, 1);
  });
}

TEST_P(CollectiveCalls, AtOnceOnOneChannelAreFound) {
  run([](World& world) {
    const SymmetricArray<float> vector(world, 8);
    Collectives collectives(world);
    const std::unique_ptr<Stream> second = world.make_stream();
    world.barrier();
    const std::string error = error_of([&] {
      if (world.rank() != 0) {
        while (!world.failed()) machine::back_off(0, 0);
        world.check();
      }
      for (Stream* stream : {&world.stream(), second.get()})
        collectives.allreduce_on_stream(vector.data(), vector.data(), 8, ElementType::float32, Reduction::sum,
                                        {.stream = stream});
      world.synchronize();
      world.synchronize(*second);
    });
    expect_part(error, "rank 0 makes a call while another");  // the error names the call once it has begun
    expect_part(error, "uses the channel");
    if (world.rank() == 0) static_cast<void>(error_of([&] { world.synchronize(*second); }));
    BEELINE_CHECK_EQ(3, world.survivors().size());
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, CollectiveCalls, ::testing::Values(Shape{"cpus", "cpu"}, Shape{"one_gpu", "cuda:0"}),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

}  // namespace

}  // namespace beeline_test::collective_calls_test
