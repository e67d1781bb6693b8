// SPDX-License-Identifier: Apache-2.0
// Collectives that go wrong: a rank that does not come, ranks in different calls, two calls at once on one channel.
// Each ends with an error that says who and what; the survivors go on with channels of their own.
#include <gtest/gtest.h>

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

namespace beeline_test {

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

  /// Runs `body` on three ranks, threads, with a short deadline.
  template <class Body>
  void run(Body body, double deadline_s = 20, bool checks = false) {
    Config config = test_config();
    config.check_collectives = checks;
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
          Collectives fresh(world);  // the last one's rounds were cut off
          if (world.rank() == 1) {
            while (!world.failed()) machine::back_off(0, 0);
          } else {
            const std::string error = error_of([&] {
              fresh.allreduce_on_stream(vector.data(), vector.data(), 1000, ElementType::float32, Reduction::sum,
                                        {.algorithm = algorithm});
              world.synchronize();
            });
            expect_part(error, "collective on rank 1 in allreduce, sequence 1");
            expect_part(error, "or not at all, run with BEELINE_CHECK_COLLECTIVES=1 (beeline run");
          }
          Team& all = world.survivors();
          BEELINE_CHECK_EQ(3, all.size());
        }
      },
      0.5);
}

TEST_P(CollectiveCalls, ThatAreComparedNeedNoAdviceToCompare) {
  run(
      [](World& world) {
        Collectives collectives(world);
        const SymmetricArray<float> vector(world, 10);
        if (world.rank() == 1) {
          while (!world.failed()) machine::back_off(0, 0);
        } else {
          const std::string error = error_of([&] {
            collectives.allreduce_on_stream(vector.data(), vector.data(), 10, ElementType::float32, Reduction::sum);
            world.synchronize();
          });
          expect_part(error, "collective on rank 1 in allreduce, sequence 1");
          BEELINE_CHECK(error.find("BEELINE_CHECK_COLLECTIVES") == std::string::npos);
        }
        BEELINE_CHECK_EQ(3, world.survivors().size());
      },
      0.5, true);
}

/// Rank 2 waits for rank 0 alone, who comes later, and waits for rank 1 in vain.
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
          if (!is_direct) expect_part(headline, "(deadline), which waits for rank 1");
        }
        BEELINE_CHECK_EQ(3, world.survivors().size());
      },
      0.5);
}

/// Ranks 0 and 1 or 2 make calls that differ; everyone hears of it.
template <class Call>
void expect_difference(World& world, Call call, const char* part) {
  const SymmetricArray<std::int32_t> vector(world, 1000);
  Collectives collectives(world, {.checks = true});
  collectives.allreduce_on_stream(vector.data(), vector.data(), 1000, ElementType::int32, Reduction::sum);
  world.synchronize();
  world.barrier();  // nobody is left in a call that went well
  const std::string error = error_of([&] {
    call(collectives, vector.data());
    world.synchronize();
  });
  expect_part(error, part);
  BEELINE_CHECK_EQ(3, world.survivors().size());
}

TEST_P(CollectiveCalls, ThatDifferAreFound) {
  run([](World& world) {
    const bool other = world.rank() == 2;
    expect_difference(
        world,
        [=](Collectives& collectives, std::int32_t* data) {
          collectives.allreduce_on_stream(data, data, 100, ElementType::int32,
                                          other ? Reduction::maximum : Reduction::sum);
        },
        "allreduce of int32 (maximum, algorithm ll_one_shot");
    expect_difference(
        world,
        [=](Collectives& collectives, std::int32_t* data) {
          collectives.allreduce_on_stream(data, data, other ? 7 : 8, ElementType::int32, Reduction::sum);
        },
        "elements to allreduce, rank");
    expect_difference(
        world,
        [=](Collectives& collectives, std::int32_t* data) {
          collectives.allreduce_on_stream(data, data, other ? 0 : 8, ElementType::int32, Reduction::sum);
        },
        "passes 0");
    expect_difference(
        world,
        [=](Collectives& collectives, std::int32_t* data) {
          collectives.allreduce_on_stream(data, data, 16, other ? ElementType::uint8 : ElementType::int32,
                                          Reduction::sum);
        },
        "members make the same calls in the same order");
    expect_difference(
        world,
        [=](Collectives& collectives, std::int32_t* data) {
          collectives.allgather_on_stream(data, data + 500, other ? 7 : 8, ElementType::int32);
        },
        "bytes to allgather, rank");
    expect_difference(
        world,
        [=](Collectives& collectives, std::int32_t* data) {
          collectives.broadcast_on_stream(data, data, 8, ElementType::int32, other ? 1 : 0);
        },
        "broadcast of int32 (algorithm ll, root 1)");
    expect_difference(
        world,
        [=](Collectives& collectives, std::int32_t* data) {
          collectives.allreduce_on_stream(data, data, 8, ElementType::int32, Reduction::sum,
                                          {.algorithm = other ? Algorithm::tree : Algorithm::read});
        },
        "allreduce of int32 (sum, algorithm tree)");
    expect_difference(
        world,
        [=](Collectives& collectives, std::int32_t* data) {
          collectives.allreduce_on_stream(data + (other ? 4 : 0), data + (other ? 4 : 0), 16, ElementType::int32,
                                          Reduction::sum, {.algorithm = Algorithm::copy_engine, .symmetric = true});
        },
        "needs vectors at the same place of the symmetric heap");
    expect_difference(  // one of them does not assert it
        world,
        [=](Collectives& collectives, std::int32_t* data) {
          collectives.allreduce_on_stream(data, data, 16, ElementType::int32, Reduction::sum,
                                          {.algorithm = Algorithm::copy_engine, .symmetric = !other});
        },
        "needs vectors at the same place of the symmetric heap");
  });
}

/// Copies are enqueued before the members know that their calls differ.
TEST_P(CollectiveCalls, ByEnginesTouchNoDestinationWhereTheyDiffer) {
  run([](World& world) {
    constexpr std::size_t count = 10'000;
    const SymmetricArray<std::int32_t> source(world, count), destination(world, count);
    const std::vector<std::int32_t> before(count, -1);
    std::vector<std::int32_t> after(count);
    world.copy(destination.data(), before.data(), count * sizeof(std::int32_t));
    Collectives collectives(world, {.engine_bytes = 40'960, .checks = true});
    const std::string error = error_of([&] {
      collectives.allreduce_on_stream(destination.data(), source.data(), count, ElementType::int32,
                                      world.rank() == 2 ? Reduction::maximum : Reduction::sum,
                                      {.algorithm = Algorithm::copy_engine});
      world.synchronize();
    });
    expect_part(error, "allreduce of int32 (");
    BEELINE_CHECK_EQ(3, world.survivors().size());
    world.copy(after.data(), destination.data(), count * sizeof(std::int32_t));
    BEELINE_CHECK(after == before);
  });
}

struct Triple {
  std::int32_t values[3];
};

/// Member 2 takes three elements for one.
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

/// As many bytes, of another type.
TEST_P(CollectiveCalls, OfOtherElementsAreFound) {
  run([](World& world) {
    const bool other = world.rank() == 2;
    const ElementType type = other ? ElementType::float64 : ElementType::int32;
    const std::size_t count = other ? 8 : 16;
    expect_difference(
        world,
        [=](Collectives& collectives, std::int32_t* data) {
          collectives.broadcast_on_stream(data, data, count, type, 0);
        },
        "broadcast of float64 (algorithm ll, root 0)");
    expect_difference(
        world,
        [=](Collectives& collectives, std::int32_t* data) {
          collectives.alltoall_on_stream(data, data + 500, count, type, {.algorithm = Algorithm::copy_engine});
        },
        "alltoall of int32 (algorithm copy_engine)");
    const std::vector<std::size_t> counts(3, count), offsets = {0, 16, 32};
    expect_difference(
        world,
        [&](Collectives& collectives, std::int32_t* data) {
          collectives.alltoallv_on_stream(data, data + 500, {counts, offsets, counts, offsets}, type);
        },
        "alltoallv of float64 (");
    expect_difference(
        world,
        [&](Collectives& collectives, std::int32_t* data) {
          launch(world, {.threads = 64, .waits = true}, AllgatherOfTriples{}, collectives.channel(), data);
        },
        "allgather of elements of 12 bytes (");
  });
}

/// Also where copy engines have nothing to do.
TEST_P(CollectiveCalls, WithoutDataAreCompared) {
  run([](World& world) {
    const CollectiveCall engines{.algorithm = Algorithm::copy_engine};
    {
      Collectives collectives(world, {.checks = true});
      collectives.allgather_on_stream(nullptr, nullptr, 0, ElementType::int32, engines);
      world.synchronize();
      BEELINE_CHECK(collectives.last_transfer() == Transfer::none);
    }
    const std::size_t count = world.rank() == 2 ? 0 : 8;
    expect_difference(
        world,
        [=](Collectives& collectives, std::int32_t* data) {
          collectives.allgather_on_stream(data, data + 500, count, ElementType::int32, engines);
        },
        "bytes to allgather, rank");
  });
}

/// Two grids of different size meet on the sessions that both have.
TEST_P(CollectiveCalls, OfDifferentNumbersOfBlocksAreFound) {
  run([](World& world) {
    const unsigned blocks = world.rank() == 2 ? 3 : 1;
    for (const Algorithm algorithm : {Algorithm::ll_one_shot, Algorithm::two_shot, Algorithm::tree})
      expect_difference(
          world,
          [=](Collectives& collectives, std::int32_t* data) {
            collectives.allreduce_on_stream(data, data, 1000, ElementType::int32, Reduction::sum,
                                            {.algorithm = algorithm, .blocks = blocks});
          },
          join("algorithm ", name(algorithm), ", 3 blocks)").c_str());
    expect_difference(
        world,
        [=](Collectives& collectives, std::int32_t* data) {
          collectives.reduce_on_stream(data, data, 1000, ElementType::int32, Reduction::sum, 0,
                                       {.algorithm = Algorithm::read, .blocks = blocks});
        },
        "algorithm read, root 0, 1 block)");
    expect_difference(
        world,
        [=](Collectives& collectives, std::int32_t* data) {
          // As long a slice on session 0, whichever number of blocks share the piece.
          collectives.broadcast_on_stream(data, data, 4, ElementType::int32, 0,
                                          {.algorithm = Algorithm::peer, .blocks = blocks});
        },
        "algorithm peer, root 0, 3 blocks)");
    const std::vector<std::size_t> counts(3, 100), offsets = {0, 100, 200};
    expect_difference(
        world,
        [&](Collectives& collectives, std::int32_t* data) {
          collectives.alltoallv_on_stream(data, data + 500, {counts, offsets, counts, offsets}, ElementType::int32,
                                          {.algorithm = Algorithm::ll, .blocks = blocks});
        },
        "alltoallv of int32 (algorithm ll, 1 block)");
  });
}

/// Member 2 reduces where the others meet.
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
    const bool other = world.rank() == 2;
    expect_difference(
        world,
        [=](Collectives& collectives, std::int32_t* data) {
          if (other)
            collectives.allreduce_on_stream(data, data, 8, ElementType::int32, Reduction::sum);
          else
            collectives.barrier_on_stream();
        },
        "barrier (algorithm alltoall)");
    expect_difference(
        world,
        [=](Collectives& collectives, std::int32_t*) {
          collectives.barrier_on_stream({.algorithm = other ? Algorithm::hierarchical : Algorithm::dissemination});
        },
        "is in barrier (algorithm hierarchical)");
    expect_difference(
        world,
        [&](Collectives& collectives, std::int32_t* data) {
          launch(world, {.threads = 64, .waits = true}, BarrierOrAllreduce{}, collectives.channel(), data);
        },
        "allreduce of int32 (sum, algorithm ll_one_shot");
    expect_difference(
        world,
        [&](Collectives& collectives, std::int32_t* data) {
          launch(world, {.threads = 64, .waits = true}, BarrierOrAllreduce{}, collectives.channel(), data);
        },
        "barrier (algorithm flat)");
  });
}

enum class Caller : std::uint32_t { group, grid };

/// Calls a collective with a root; the status goes where nobody else writes.
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

/// Rank 1 names a root that is no member, the others rank 0; everyone hears of it, and rank 1 has got nothing.
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
    world.barrier();  // of a member whose part was over
  });
  expect_part(error, join("rank 1: ", name(call.operation), " in kernel beeline_test::RootedCall refused: root ",
                          bad_root, " is no rank of the team: these are 0 to 2 (invalid_argument)"));
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
      expect_root_refused(world, {operation, Caller::group, 0}, 3);       // the first that is none
      expect_root_refused(world, {operation, Caller::grid, 0}, no_peer);  // what plans say of operations without a root
    }
  });
}

/// Rank 2 expects `expected` elements of rank 0, who sends `sent`; all others fit. Everyone hears of it.
void expect_lengths_found(World& world, const CollectiveCall& how, bool checks, std::size_t sent,
                          std::size_t expected) {
  Collectives collectives(world, {.sessions = 3, .packet_bytes = 32, .staging_bytes = 2048, .checks = checks});
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
    while (!world.failed()) machine::back_off(0, 0);  // a member whose part was right
    world.check();
  });
  expect_part(error, join("rank 0 sends ", 4 * sent, " bytes to rank 2, which expects ", 4 * expected));
  BEELINE_CHECK_EQ(3, world.survivors().size());
}

TEST_P(CollectiveCalls, LengthsThatDoNotFitAreFound) {
  run([](World& world) {
    for (const Algorithm algorithm : {Algorithm::ll, Algorithm::peer, Algorithm::bulk})
      expect_lengths_found(world, {.algorithm = algorithm, .blocks = 3}, false, 5, 900);
    expect_lengths_found(world, {.algorithm = Algorithm::ll}, false, 900, 0);
    expect_lengths_found(world, {.algorithm = Algorithm::peer}, true, 0, 1);
  });
}

TEST_P(CollectiveCalls, AtOnceOnOneChannelAreFound) {
  run([](World& world) {
    const SymmetricArray<float> vector(world, 8);
    Collectives collectives(world, {.checks = true});
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
    expect_part(error, "rank 0 makes allreduce of float32");
    expect_part(error, "while another call uses the channel");
    if (world.rank() == 0) static_cast<void>(error_of([&] { world.synchronize(*second); }));
    BEELINE_CHECK_EQ(3, world.survivors().size());
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, CollectiveCalls, ::testing::Values(Shape{"cpus", "cpu"}, Shape{"one_gpu", "cuda:0"}),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

}  // namespace

}  // namespace beeline_test
