// SPDX-License-Identifier: Apache-2.0
// Distributed arrays that cannot be created: every rank gets the same error, and the world continues.
#include <gtest/gtest.h>

#include "beeline/beeline.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test::distributed_array_test {

namespace {

using namespace beeline;

using Array = DistributedArray<std::uint64_t>;

void expect_refused(World& world, Status code, std::initializer_list<std::string_view> words, std::size_t count,
                    const Distribution& distribution = {}) {
  check_error(code, words, [&] { const Array array(world, count, distribution); });
  Array after(world, 1000);  // as if no array had been asked for
  if (world.rank() == 0) after[999] = 42;
  world.barrier();
  BEELINE_CHECK_EQ(42u, after[999]);
  world.barrier();
}

void run(WorldKind kind, const std::function<void(World&)>& body) {
  Config config = test_config();
  config.device = "cpu";
  expect_all_passed(run_ranks(kind, 3, body, config));
}

class DistributedArrayRefused : public ::testing::TestWithParam<WorldKind> {};

TEST_P(DistributedArrayRefused, OfNoElements) {
  run(GetParam(), [](World& world) { expect_refused(world, Status::invalid_argument, {"of no bytes"}, 0); });
}

TEST_P(DistributedArrayRefused, OfSizesThatDiffer) {
  run(GetParam(), [](World& world) {
    expect_refused(world, Status::invalid_argument, {"distributed arrays differ", "rank"},
                   world.rank() == 1 ? 2000 : 1000);
  });
}

TEST_P(DistributedArrayRefused, OfKindsThatDiffer) {
  run(GetParam(), [](World& world) {
    expect_refused(world, Status::invalid_argument, {"distributed arrays differ", "pinned memory"}, 1000,
                   {.chunk_elements = 0, .kind = world.rank() == 2 ? MemoryKind::pinned : MemoryKind::device});
  });
}

TEST_P(DistributedArrayRefused, OfTooManyChunks) {
  run(GetParam(), [](World& world) {
    expect_refused(world, Status::invalid_argument, {"32769 chunks of 4096 bytes", "at most 16384"},
                   (std::size_t{16} << 20) + 1, {.chunk_elements = 3, .kind = MemoryKind::host});
  });
}

TEST_P(DistributedArrayRefused, LargerThanTheRange) {
  run(GetParam(), [](World& world) {
    expect_refused(world, Status::no_resource, {"BEELINE_SLOT_SHIFT"},
                   (std::size_t{9} << world.config().slot_shift) / sizeof(std::uint64_t));
    expect_refused(world, Status::no_resource, {"BEELINE_SLOT_SHIFT"}, SIZE_MAX);
  });
}

TEST_P(DistributedArrayRefused, WithoutAPlace) {
  run(GetParam(), [](World& world) {
    std::vector<std::unique_ptr<Array>> all;
    for (int i = 0; i < 256; ++i) all.push_back(std::make_unique<Array>(world, 1, Distribution{0, MemoryKind::host}));
    check_error(Status::no_resource, {"of 256 places", "256 are taken", "free arrays"},
                [&] { const Array one_more(world, 1); });
    all.erase(all.begin() + 100);
    const Array now(world, 1);
    BEELINE_CHECK_EQ(0, world.owner_of(now.data()));
  });
}

TEST_P(DistributedArrayRefused, WhereAnotherRankRegistersMemory) {
  run(GetParam(), [](World& world) {
    std::vector<std::byte> mine(64);
    check_error(Status::invalid_argument, {"is in register_memory", "is in make_distributed"}, [&] {
      if (world.rank() == 0)
        static_cast<void>(world.register_memory(mine.data(), mine.size()));
      else
        const Array array(world, 10);
    });
  });
}

TEST_P(DistributedArrayRefused, FreesThatDiffer) {
  run(GetParam(), [](World& world) {
    const Array one(world, 10), two(world, 10);
    check_error(Status::invalid_argument, {"free different distributed arrays"},
                [&] { detail::free_distributed(world, world.rank() == 0 ? one.chunks().base : two.chunks().base); });
    check_error(Status::invalid_argument, {"none that it has"},
                [&] { detail::free_distributed(world, two.chunks().base + 8); });
    BEELINE_CHECK_EQ(0, world.owner_of(one.data()));
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, DistributedArrayRefused, ::testing::Values(WorldKind::threads, WorldKind::processes),
                         [](const auto& each) { return each.param == WorldKind::threads ? "threads" : "processes"; });

}  // namespace

}  // namespace beeline_test::distributed_array_test
