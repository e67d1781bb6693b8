// SPDX-License-Identifier: Apache-2.0
// The ranges that profilers show, counted by a tool that NVTX loads.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "beeline/host/launch.hpp"
#include "tests/support/check.hpp"
#include "tests/support/ranks.hpp"
#include "tests/unit/nvtx_recorder.hpp"

namespace beeline_test {

namespace {

using namespace beeline;

constexpr int profiled_ranks = 2;

class ProfilerRanges : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {  // before the process's first range
    setenv("NVTX_INJECTION64_PATH", BEELINE_NVTX_RECORDER, 1);
    void* const tool = dlopen(BEELINE_NVTX_RECORDER, RTLD_NOW);
    ASSERT_NE(nullptr, tool) << dlerror();
    count_ = reinterpret_cast<CountNvtxRanges*>(dlsym(tool, "beeline_nvtx_counts"));
    ASSERT_NE(nullptr, count_) << dlerror();
  }

  /// Checks how many ranges of one name all ranks make together when each calls `body` once.
  static void expect_ranges(const char* name, int expected, const std::function<void(World&)>& body) {
    Config config = test_config();
    config.device = "cpu";
    int before = 0, after = 0;
    expect_all_passed(run_ranks(
        WorldKind::threads, profiled_ranks,
        [&](World& world) {
          world.barrier();
          if (world.rank() == 0) before = count_(name).pushed;
          static_cast<void>(world.allgather({}));
          body(world);
          static_cast<void>(world.allgather({}));
          if (world.rank() == 0) after = count_(name).pushed;
          static_cast<void>(world.allgather({}));
        },
        config));
    EXPECT_EQ(expected, after - before) << name;
    EXPECT_EQ(0, count_(name).open);
    EXPECT_EQ(0, count_(name).foreign);
  }

  static inline CountNvtxRanges* count_ = nullptr;
};

struct NothingKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid&, const Context&) const {}
};

TEST_F(ProfilerRanges, OfWorlds) {
  const int joined = count_("join the world").pushed + count_("make the world").pushed;
  expect_ranges("barrier", 0, [](World&) {});
  EXPECT_GE(count_("join the world").pushed + count_("make the world").pushed, joined + profiled_ranks);
}

TEST_F(ProfilerRanges, OfBarriers) {
  expect_ranges("barrier", 3 * profiled_ranks, [](World& world) {
    for (int i = 0; i < 3; ++i) world.barrier();
  });
}

TEST_F(ProfilerRanges, OfAllocations) {
  expect_ranges("allocate", 2 * profiled_ranks, [](World& world) {
    for (int i = 0; i < 2; ++i) world.free(world.allocate(1000));
  });
}

TEST_F(ProfilerRanges, OfLaunches) {
  expect_ranges("launch", 4 * profiled_ranks, [](World& world) {
    for (int i = 0; i < 4; ++i) launch(world, {}, NothingKernel{});
    world.synchronize();
  });
}

TEST_F(ProfilerRanges, OfCopies) {
  expect_ranges("copy", profiled_ranks, [](World& world) {
    int from = 1, to = 0;
    world.copy(&to, &from, sizeof from);
  });
}

}  // namespace

}  // namespace beeline_test
