// SPDX-License-Identifier: Apache-2.0
// The ring reduction: its schedule alone, and every scheme compared with the serial reference, bit for bit. Ranks are
// threads.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "problem.hpp"
#include "scheme.hpp"
#include "serial.hpp"
#include "sum.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"

namespace ring_reduction {

namespace {

using beeline::Status;
using beeline_test::check_error;

TEST(RingProblem, SizesAreBytesOfWholeElements) {
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("4"), 1u);
  EXPECT_EQ(parse_size("4K"), 1024u);
  EXPECT_EQ(parse_size("64M"), std::size_t{16} << 20);
  EXPECT_EQ(parse_size("1024G"), std::size_t{1} << 38);
  for (const char* bad : {"", "M", "5", "-4", "4 K", "4KB", "4k", "1025G", "99999999999999999999", "1e6"})
    check_error(Status::invalid_argument, {"--size: '", bad, "is no size of a vector", "a multiple of 4"},
                [&] { static_cast<void>(parse_size(bad)); });
}

TEST(RingProblem, ListsOfSizesAndChunks) {
  EXPECT_EQ(parse_sizes("4,4K"), (std::vector<std::size_t>{1, 1024}));
  check_error(Status::invalid_argument, {"--size: no size is named"}, [] { static_cast<void>(parse_sizes("")); });
  for (const char* bad : {"4,", ",4", "4,,8", ","})
    check_error(Status::invalid_argument, {"--size: ''", "is no size of a vector"},
                [&] { static_cast<void>(parse_sizes(bad)); });
  EXPECT_EQ(parse_chunks("", {.lanes = 2}).at(0).post_chunk_bytes, 0u);
  const std::vector<Shape> shapes = parse_chunks("64K,4M", {.lanes = 2});
  ASSERT_EQ(shapes.size(), 2u);
  EXPECT_EQ(shapes[1].post_chunk_bytes, std::size_t{4} << 20);
  EXPECT_EQ(shapes[1].lanes, 2u);
  for (const char* bad : {"0", "4KB", "64K,,4M", "64K,"})
    check_error(Status::invalid_argument, {"--chunk: '", "is no size of a chunk"},
                [&] { static_cast<void>(parse_chunks(bad, {})); });
}

/// Every element belongs to one block.
TEST(RingSums, SharesOfBlocks) {
  for (const std::size_t count : {0, 1, 4, 5, 31, 1000})
    for (unsigned blocks = 1; blocks <= 5; ++blocks) {
      std::size_t next = 0;
      for (unsigned block = 0; block < blocks; ++block) {
        const Range share = share_of(count, block, blocks);
        EXPECT_EQ(share.first, next);
        EXPECT_TRUE(share.first % grain == 0 || share.count == 0);
        next += share.count;
      }
      EXPECT_EQ(next, count);
    }
}

TEST(RingProblem, RepeatedSumsStayInRange) {
  EXPECT_EQ(reductions_in_range(2), 120);
  EXPECT_EQ(reductions_in_range(3), 60);
  EXPECT_EQ(reductions_in_range(64), 20);
  for (int ranks = 1; ranks <= 64; ++ranks) EXPECT_EQ(exact_reductions(ranks), 3);
}

TEST(RingProblem, TooLargeIsRefused) {
  beeline::Config config;
  config.size = 4;
  const apps::Machine small{{}, std::size_t{1} << 30};
  check_error(Status::no_resource, {"a vector of 1073741824 bytes on 4 ranks", "this machine has 1.0"},
              [&] { fit(config, std::size_t{1} << 28, true, small); });
  fit(config, 1000, true, small);
  EXPECT_EQ(config.heap_bytes, Vectors::heaps(1000, 4, false).symmetric_bytes);
}

/// The ranks whose values are summed in an element, by bit.
using Terms = std::uint64_t;

/// Runs the lists of transfers of all ranks, step by step, on sets of terms instead of numbers.
std::vector<std::vector<Terms>> run_schedule(std::size_t count, std::uint32_t ranks, std::size_t chunk_bytes) {
  std::vector<std::vector<Transfer>> lists;
  std::vector<std::vector<Terms>> vectors, inboxes;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    lists.push_back(transfers(make_ring(count, ranks, rank, chunk_bytes)));
    vectors.emplace_back(count, Terms{1} << rank);
    inboxes.emplace_back(inbox_elements(count, ranks));
  }
  for (std::size_t n = 0; n < lists.front().size(); ++n) {
    const std::vector<std::vector<Terms>> before = vectors;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const std::uint32_t previous = (rank + ranks - 1) % ranks;
      const Transfer &out = lists[previous][n], &in = lists[rank][n];
      EXPECT_EQ(out.sends, in.receives);
      EXPECT_EQ(out.inbox, in.inbox);
      EXPECT_EQ(out.reduces, in.reduces);
      EXPECT_EQ(in.receives.first % grain, in.receives.count == 0 ? in.receives.first % grain : 0);
      for (std::size_t i = 0; i < in.receives.count; ++i) {
        const Terms arrived = before[previous][in.receives.first + i];
        Terms& mine = vectors[rank][in.receives.first + i];
        if (!in.reduces) {
          mine = arrived;
          continue;
        }
        EXPECT_EQ(mine & arrived, 0u) << "a term is added twice";
        EXPECT_EQ(inboxes[rank].at(in.inbox + i), 0u) << "two chunks in one place";
        inboxes[rank].at(in.inbox + i) = arrived;
        mine |= arrived;
      }
    }
  }
  return vectors;
}

TEST(RingSchedule, EveryRankEndsWithEveryTermOnce) {
  for (const std::uint32_t ranks : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 16u})
    for (const std::size_t count : {0, 1, 3, 4, 5, 17, 64, 100, 257})
      for (const std::size_t chunk_bytes : {1, 16, 48, 1 << 20}) {
        const Terms all = (Terms{1} << ranks) - 1;
        for (const std::vector<Terms>& vector : run_schedule(count, ranks, chunk_bytes))
          EXPECT_EQ(vector, std::vector<Terms>(count, all)) << ranks << " ranks, " << count << " elements";
      }
}

TEST(RingSchedule, ChunksAreOfTheSizeAskedFor) {
  const Ring ring = make_ring(std::size_t{16} << 20, 2, 1, std::size_t{4} << 20);
  EXPECT_EQ(ring.chunks, 8u);
  EXPECT_EQ(ring.chunk_elements, std::size_t{1} << 20);
  EXPECT_EQ(ring.steps(), 2u);
  EXPECT_EQ(make_ring(1000, 64, 63, 1 << 20).chunks, 1u);
  EXPECT_EQ(transfers(make_ring(1000, 64, 63, 1 << 20)).size(), 126u);
}

/// A number of ranks, which are threads, and how they reduce vectors.
struct SchemeCase {
  int ranks, host_threads;
  Shape shape;
  const char* device = "cpu";
};

std::ostream& operator<<(std::ostream& out, const SchemeCase& c) {
  return out << c.ranks << " ranks of " << c.host_threads << " threads, " << c.shape.lanes << " lanes, on " << c.device;
}

/// Chunks so small that even short vectors have many.
constexpr Shape fine{.copy_chunk_bytes = 256,
                     .put_chunk_bytes = 64,
                     .task_chunk_bytes = 64,
                     .post_chunk_bytes = 96,
                     .service_chunk_bytes = 64,
                     .packet_chunk_bytes = 32,
                     .lanes = 3,
                     .service_blocks = 2};
/// One lane; several blocks share the work of its sums.
constexpr Shape shared{.post_chunk_bytes = 4096, .service_chunk_bytes = 1024, .lanes = 1, .blocks = 3};

class RingSchemes : public testing::TestWithParam<SchemeCase> {};

void run_schemes(beeline::World& world, std::size_t count, const Shape& shape) {
  Vectors vectors(world, count, shape);
  std::uint32_t set = 0;
  for (const SchemeInfo& info : schemes()) {
    const std::unique_ptr<Scheme> scheme = info.make(vectors);
    for (const int reductions : {1, exact_reductions(world.size())}) {
      vectors.fill(++set);
      scheme->run(reductions);
      const std::vector<float> expected = serial_reduction(count, world.size(), set, reductions, 1);
      EXPECT_EQ(max_error(expected, vectors.values()), 0) << info.name << ", " << count << " elements";
      EXPECT_EQ(checksum(expected), checksum(vectors.values())) << info.name << ", " << count << " elements";
    }
  }
}

TEST_P(RingSchemes, HaveTheReferencesBits) {
  const SchemeCase& c = GetParam();
  if (const std::string why = beeline_test::missing_gpus(c.device, c.ranks); !why.empty()) GTEST_SKIP() << why;
  beeline::Config config = beeline_test::test_config();
  const Vectors::Heaps heaps = Vectors::heaps(100'003, c.ranks, true);  // room for the lanes
  config.heap_bytes = heaps.symmetric_bytes, config.pinned_heap_bytes = heaps.pinned_bytes;
  config.slot_shift = 32, config.device = c.device, config.host_threads = c.host_threads;
  beeline_test::expect_all_passed(beeline_test::run_ranks(
      beeline_test::WorldKind::threads, c.ranks,
      [&](beeline::World& world) {
        for (const std::size_t count : {0, 1, 5, 1001, 4096}) run_schemes(world, count, c.shape);
        run_schemes(world, 100'003, {});
      },
      config));
}

INSTANTIATE_TEST_SUITE_P(Host, RingSchemes,
                         testing::Values(SchemeCase{1, 1, {}}, SchemeCase{2, 1, fine}, SchemeCase{3, 2, fine},
                                         SchemeCase{4, 1, fine}, SchemeCase{4, 1, shared}, SchemeCase{7, 1, {}}));
INSTANTIATE_TEST_SUITE_P(Gpu, RingSchemes,
                         testing::Values(SchemeCase{1, 1, {}, "auto"}, SchemeCase{2, 1, fine, "auto"},
                                         SchemeCase{2, 1, {}, "auto"}, SchemeCase{2, 1, shared, "auto"},
                                         SchemeCase{4, 1, fine, "auto"}, SchemeCase{2, 1, fine, "cuda:0"},
                                         SchemeCase{3, 1, {}, "cuda:0"}));

}  // namespace

}  // namespace ring_reduction
