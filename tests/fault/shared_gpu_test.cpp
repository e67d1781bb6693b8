// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads and share a GPU: its memory, its multiprocessors, and its faults.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "beeline/beeline.hpp"
#include "beeline/host/collectives.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/stopwatch.hpp"

namespace beeline_test::shared_gpu_test {

namespace {

using namespace beeline;

struct WaitForSignal {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* signal) const {
    static_cast<void>(wait(grid.block(), ctx, signal, Compare::equal, 1));
  }
};

LaunchOptions waiting_blocks(unsigned blocks) {
  LaunchOptions options;
  options.blocks = blocks;
  options.threads = 64;
  options.waits = true;
  return options;
}

/// Three grids of a third of the GPU fit; the fourth rank's is refused with a list of waiting grids, and fits later.
TEST(SharedGpu, HoldsAsManyWaitingRanksAsFit) {
  if (const std::string why = missing_gpus(1); !why.empty()) GTEST_SKIP() << why;
  expect_all_passed(run_ranks(
      WorldKind::threads, 4,
      [](World& world) {
        const Signals signal(world, 1);
        const unsigned quarter = resident_blocks<WaitForSignal, std::uint64_t*>(world, 64);
        const LaunchOptions third = waiting_blocks(quarter * 4 / 3);
        if (world.rank() < 3) launch(world, third, WaitForSignal{}, signal.data());
        world.barrier();
        if (world.rank() == 3)
          check_error(Status::no_resource,
                      {"rank 3's kernel", "WaitForSignal", "rank 0's kernel", "rank 1's kernel", "rank 2's kernel",
                       "holds 33 %"},
                      [&] { launch(world, third, WaitForSignal{}, signal.data()); });
        world.barrier();
        const std::unique_ptr<Stream> releasing = world.make_stream();
        releasing->write_signal(signal.data(), 1);
        world.synchronize(*releasing);
        if (world.rank() < 3) world.synchronize();
        world.barrier();
        if (world.rank() == 3) launch(world, third, WaitForSignal{}, signal.data());
        world.synchronize();
        world.barrier();
      },
      test_config("cuda:0"), 60));
}

/// Streams of new channels work while kernels of other ranks wait on the same GPU: each round has one late rank.
TEST(SharedGpu, FreshStreamsAreNotHeldUp) {
  if (const std::string why = missing_gpus(1); !why.empty()) GTEST_SKIP() << why;
  expect_all_passed(run_ranks(
      WorldKind::threads, 4,
      [](World& world) {
        constexpr std::size_t count = 4096;
        constexpr int rounds = 300;
        const SymmetricArray<float> vector(world, count);
        for (int round = 0; round < rounds; ++round) {
          Collectives collectives(world, {.sessions = 4, .packet_bytes = 1024, .staging_bytes = 16384});
          if (world.rank() == round % world.size()) std::this_thread::sleep_for(std::chrono::milliseconds(3));
          collectives.allreduce_on_stream(vector.data(), vector.data(), count, ElementType::float32, Reduction::sum,
                                          {.algorithm = Algorithm::copy_engine});
          world.synchronize();
        }
      },
      test_config(), 60));
}

/// Heaps of two fifths of the GPU's memory: the third rank's heap does not fit, and all errors name that rank.
TEST(SharedGpu, HasNoMemoryForMoreRanks) {
  if (const std::string why = missing_gpus(1); !why.empty()) GTEST_SKIP() << why;
  constexpr int ranks = 3;
  Config config = test_config("cuda:0");
  const std::size_t memory = visible_gpus().front().memory_bytes;
  config.heap_bytes = memory / 5 * 2;
  config.slot_shift = max_slot_shift;
  for (const RankOutcome& outcome : run_ranks(
           WorldKind::threads, ranks, [](World&) { throw CheckFailure("a world without memory"); }, config, 60)) {
    EXPECT_NE(std::string::npos, outcome.failure.find("GPU 0 has no room for")) << outcome.failure;
    EXPECT_NE(std::string::npos, outcome.failure.find("could not make its part")) << outcome.failure;
  }
}

struct StoreNowhere {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, std::uintptr_t address) const {
    if (grid.thread_rank() == 0) *reinterpret_cast<volatile std::uint32_t*>(address) = 1;
  }
};

/// Rank 0's kernel stores to an unmapped address while rank 1's waits: both errors soon name both ranks.
void fail_together(World& world) {
  const Signals signal(world, 1);
  const Stopwatch stopwatch;
  try {
    if (world.rank() == 0)
      launch(world, {}, StoreNowhere{}, std::uintptr_t{64});
    else
      launch(world, waiting_blocks(1), WaitForSignal{}, signal.data());
    world.synchronize();
  } catch (const Error& error) {
    world.abort(error.what());
    BEELINE_CHECK_CONTAINS(error.what(), "ends every rank of its process: 0, 1");
    if (!world.config().peer_access)
      BEELINE_CHECK_CONTAINS(error.what(), join("kernels of rank ", world.rank(), " do not reach the memory of rank ",
                                                1 - world.rank(), " (no peer access between the GPUs): use copies"));
    BEELINE_CHECK(stopwatch.seconds() < 5);
    return;
  }
  throw CheckFailure("a kernel stored to no memory, and nobody noticed");
}

struct Sharing {
  int gpus;
  bool peer_access;
};
class GpuFault : public ::testing::TestWithParam<Sharing> {};

/// Last in this file, because CUDA cannot be used in this process afterwards.
TEST_P(GpuFault, NamesAllRanksOfItsProcess) {
  const Sharing how = GetParam();
  if (const std::string why = missing_gpus(how.gpus); !why.empty()) GTEST_SKIP() << why;
  Config config = test_config(how.gpus == 1 ? "cuda:0" : "cuda:0,1");
  config.peer_access = how.peer_access;
  expect_all_passed(run_ranks(WorldKind::threads, 2, fail_together, config, 60));
}

INSTANTIATE_TEST_SUITE_P(Gpus, GpuFault, ::testing::Values(Sharing{1, true}, Sharing{2, true}, Sharing{2, false}),
                         [](const auto& info) {
                           return std::to_string(info.param.gpus) + (info.param.peer_access ? "" : "WithoutPeerAccess");
                         });

}  // namespace

}  // namespace beeline_test::shared_gpu_test
