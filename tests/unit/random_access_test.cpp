// SPDX-License-Identifier: Apache-2.0
// RandomAccess: the stream and the layout, and every method word for word against the serial reference. Ranks are
// threads; a rank that dies is a process.

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "making.hpp"
#include "method.hpp"
#include "problem.hpp"
#include "serial.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/split_nodes.hpp"

namespace random_access {

namespace {

using beeline::Status;
using beeline_test::check_error;

TEST(RandomAccessStream, StartsAnywhere) {
  // HPCC steps the word as a signed number: the polynomial is added where the sign was set.
  std::uint64_t number = 1;
  for (std::uint64_t n = 0; n < 5000; ++n) {
    ASSERT_EQ(starts(n), number) << n;
    const bool was_negative = static_cast<std::int64_t>(number) < 0;
    number *= 2;
    if (was_negative) number ^= 7;
    ASSERT_EQ(next_number(starts(n)), number) << n;
  }
}

TEST(RandomAccessStream, RepeatsAfterThePeriodOfTheSpecification) {
  constexpr std::uint64_t period = 1317624576693539401u;
  EXPECT_EQ(starts(period), 1u);
  EXPECT_EQ(starts(period + 12345), starts(12345));
  EXPECT_NE(starts(period / 7), 1u);
}

TEST(RandomAccessProblem, EveryWordHasOneOwner) {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 64, 1000}) {
    const Layout layout = layout_of(10, ranks);
    std::uint64_t next = 0;
    for (std::uint32_t rank = 0; rank < layout.ranks; ++rank) {
      const Piece range = layout.range(rank);
      ASSERT_EQ(range.first, next);
      ASSERT_LE(range.count, layout.range(0).count);
      for (std::uint64_t i = 0; i < range.count; ++i) {
        ASSERT_EQ(layout.owner(range.first + i), rank) << ranks << " ranks, index " << range.first + i;
        ASSERT_EQ(layout.position(range.first + i), i) << ranks << " ranks, index " << range.first + i;
      }
      next += range.count;
    }
    EXPECT_EQ(next, layout.words());
  }
}

/// Numbers after `number` of the stream.
std::vector<std::uint64_t> numbers_after(std::uint64_t number, std::uint64_t count) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < count; ++i) all.push_back(number = next_number(number));
  return all;
}

/// `make_and_apply` beside plain loops, with few ranks (by vectors, if the processor has them) and with many.
void expect_made(int ranks, std::uint64_t count, std::uint64_t arrived_count) {
  SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(count) + " made, " + std::to_string(arrived_count));
  const Layout layout = layout_of(12, ranks);
  const std::uint64_t first = starts(1'000'000);
  const std::vector<std::uint64_t> arrived = numbers_after(starts(7'000'000), arrived_count);
  std::vector<std::uint64_t> words(layout.range(0).count), expected = words;
  std::vector<std::uint64_t> boxes(layout.ranks * box_words);
  std::vector<std::uint64_t*> ends;
  for (std::size_t rank = 0; rank < layout.ranks; ++rank) ends.push_back(boxes.data() + rank * box_words);
  const std::uint64_t last =
      make_and_apply(ends.data(), {layout, words.data()}, first, count, {arrived.data(), arrived.size()});

  std::vector<std::vector<std::uint64_t>> sorted(layout.ranks);
  for (const std::uint64_t number : numbers_after(first, count))
    sorted[layout.owner(layout.index_of(number))].push_back(number);
  for (const std::uint64_t number : arrived) expected[layout.position(layout.index_of(number))] ^= number;
  EXPECT_EQ(last, starts(1'000'000 + count));
  EXPECT_EQ(words, expected);
  for (std::size_t rank = 0; rank < layout.ranks; ++rank)
    EXPECT_EQ(std::vector<std::uint64_t>(boxes.data() + rank * box_words, ends[rank]), sorted[rank]) << rank;
}

TEST(RandomAccessMaking, SortsByOwnerAndApplies) {
  for (const int ranks : {1, 2, 3, 4, 8, 9, 64})
    for (const std::uint64_t count : {0u, 5u, 8u, 77u, 1024u})
      for (const std::uint64_t arrived : {0u, 3u, 16u, 333u, 1024u}) expect_made(ranks, count, arrived);
}

TEST(RandomAccessProblem, Sizes) {
  EXPECT_EQ(parse_words("1K,64M", 3, false), (std::vector<Layout>{{10, 3, -1}, {26, 3, -1}}));
  EXPECT_EQ(parse_words("1M", 4, true), (std::vector<Layout>{{22, 4, 2}}));
  EXPECT_EQ(parse_words("1M", 3, true), (std::vector<Layout>{{21, 3, -1}}));  // the largest power of two
  for (const char* bad : {"0", "-1", "1K,,2K", "512", "1000", "3K", "2048G", "x"})
    check_error(Status::invalid_argument, {"--words: '", "is no size of a table", "powers of two from 1K to 1024G"},
                [&] { static_cast<void>(parse_words(bad, 2, false)); });
  check_error(Status::invalid_argument, {"--words: no size is named"},
              [] { static_cast<void>(parse_words("", 2, false)); });
  check_error(Status::invalid_argument, {"1024G for each of 2 ranks are more than 1024G words"},
              [] { static_cast<void>(parse_words("1024G", 2, true)); });
}

TEST(RandomAccessProblem, UpdatesAreFourForEachWord) {
  for (const int ranks : {1, 2, 3, 7}) {
    EXPECT_EQ(updates_of(run_of(layout_of(12, ranks)), ranks), 4u << 12);
    EXPECT_NEAR(static_cast<double>(updates_of(run_of(layout_of(12, ranks), 16), ranks)), 4 << 8, ranks);
  }
}

TEST(RandomAccessProblem, MoreThanHalfOfTheMemoryIsRefused) {
  beeline::Config config;
  config.size = 4;
  constexpr std::size_t memory = std::size_t{1} << 30;
  fit(config, {layout_of(26, 4)}, {{}, 4 * memory});  // 512 MiB of 4 GiB
  EXPECT_GE(config.heap_bytes, memory / 8);
  check_error(Status::no_resource,
              {"a table of 2^27 words on 4 ranks takes 268435456 bytes a rank, and the limit is 134217728", "half"},
              [&] {
                fit(config, {layout_of(27, 4)}, {{}, memory});
              });
}

/// A number of ranks, which are threads, and their shape.
struct MethodCase {
  int ranks, host_threads;
  unsigned host_blocks;
  unsigned bits = 12;
  const char* device = "cpu";
  int nodes = 1;
  const char* transports = "sockets";
};

std::ostream& operator<<(std::ostream& out, const MethodCase& c) {
  return out << c.ranks << " ranks of " << c.host_blocks << " blocks of " << c.host_threads << " threads on "
             << c.device << ", " << c.nodes << " nodes by " << c.transports;
}

class RandomAccessMethods : public testing::TestWithParam<MethodCase> {};

void run_methods(beeline::World& world, const MethodCase& c) {
  const Layout layout = layout_of(c.bits, c.ranks);
  Table table(world, layout, c.host_blocks);
  for (const MethodInfo& info : methods()) {
    if (!info.reason(world.config()).empty()) continue;
    const std::unique_ptr<Method> method = info.make(table);
    for (const std::uint64_t divisor : {1, 5}) {
      const Run run = run_of(layout, divisor);
      table.fill();
      method->run(run);
      world.barrier();
      if (c.nodes == 1) {
        EXPECT_EQ(table.gather(), serial_table(layout, run)) << info.name;
      }
      EXPECT_EQ(table.errors(run), 0u) << info.name;
    }
  }
}

TEST_P(RandomAccessMethods, HaveTheReferencesTable) {
  const MethodCase& c = GetParam();
  if (const std::string why = beeline_test::missing_gpus(c.device, c.ranks); !why.empty()) GTEST_SKIP() << why;
  if (c.nodes > 1) SKIP_WITHOUT(c.transports);
  beeline::Config config = beeline_test::test_config();
  config.size = c.ranks, config.split_nodes = c.nodes, config.transports = c.transports;
  fit(config, {layout_of(c.bits, c.ranks)}, {{}, SIZE_MAX});
  config.heap_bytes = std::max(config.heap_bytes, buffer_bytes(c.ranks, std::string(c.device) != "cpu") + (16u << 20));
  config.slot_shift = 32, config.device = c.device, config.host_threads = c.host_threads;
  beeline_test::expect_all_passed(beeline_test::run_ranks(
      beeline_test::WorldKind::threads, c.ranks, [&](beeline::World& world) { run_methods(world, c); }, config));
}

INSTANTIATE_TEST_SUITE_P(Host, RandomAccessMethods,
                         testing::Values(MethodCase{1, 1, 1}, MethodCase{2, 1, 1, 14}, MethodCase{2, 2, 2},
                                         MethodCase{3, 1, 1}, MethodCase{4, 1, 1}, MethodCase{7, 1, 1}));
INSTANTIATE_TEST_SUITE_P(AcrossNodes, RandomAccessMethods,
                         testing::Values(MethodCase{2, 1, 1, 12, "cpu", 2}, MethodCase{3, 2, 2, 12, "cpu", 3},
                                         MethodCase{4, 1, 1, 14, "cpu", 2, "ucx"}));
INSTANTIATE_TEST_SUITE_P(Gpu, RandomAccessMethods,
                         testing::Values(MethodCase{1, 1, 1, 20, "auto"}, MethodCase{2, 1, 1, 20, "auto"},
                                         MethodCase{3, 1, 1, 20, "auto"}, MethodCase{4, 1, 1, 20, "auto"},
                                         MethodCase{2, 1, 1, 16, "cuda:0"}));

TEST(RandomAccessTable, CountsErrors) {
  beeline_test::expect_passed_on_cpus(2, [](beeline::World& world) {
    Table table(world, layout_of(10, 2));
    const auto run = run_of(table.layout());
    table.fill();
    EXPECT_GT(table.errors(run), 0u);  // no method has applied the updates
    const std::unique_ptr<Method> method = atomics().make(table);
    table.fill();
    method->run(run);
    world.barrier();
    if (world.rank() == 1) table.target().words[3] ^= 1;
    EXPECT_EQ(table.errors(run), 1u);
  });
}

/// What rank 0 hears of a method whose other rank makes `runs` runs, and then does `other`.
std::string error_beside(const MethodInfo& info, beeline_test::WorldKind kind, const beeline::Config& config, int runs,
                         void (*other)(beeline::World&)) {
  const auto outcomes = beeline_test::run_ranks(
      kind, 2,
      [&](beeline::World& world) {
        Table table(world, layout_of(10, 2));
        const std::unique_ptr<Method> method = info.make(table);
        table.fill();
        for (int i = 0; i < runs; ++i) method->run(run_of(table.layout()));
        if (world.rank() == 1) return other(world);
        for (;;) method->run(run_of(table.layout()));
      },
      config, 60);
  return outcomes.front().failure;
}

beeline::Config config_with(std::int64_t deadline_ns, int nodes = 1) {
  beeline::Config config = beeline_test::test_config();
  config.deadline_ns = deadline_ns, config.split_nodes = nodes, config.transports = "sockets";
  return config;
}

/// At the beginning, and in the middle of the work.
TEST(RandomAccessFaults, ADeadlineNamesTheRankThatIsMissing) {
  for (const MethodInfo& info : {mailboxes(), put()})
    for (const int runs : {0, 3}) {
      const std::string error = error_beside(info, beeline_test::WorldKind::threads, config_with(300'000'000), runs,
                                             [](beeline::World& world) {
                                               while (!world.failed()) usleep(1000);
                                             });
      EXPECT_NE(error.find("rank 1"), std::string::npos) << info.name << ": " << error;
      EXPECT_NE(error.find("deadline"), std::string::npos) << info.name << ": " << error;
    }
}

TEST(RandomAccessFaults, ADeadRankIsNamed) {
  for (const MethodInfo& info : {mailboxes(), put(), task()}) {
    const std::string error = error_beside(info, beeline_test::WorldKind::processes, config_with(10'000'000'000), 0,
                                           [](beeline::World&) { _exit(3); });
    EXPECT_NE(error.find("rank 1"), std::string::npos) << info.name << ": " << error;
  }
}

TEST(RandomAccessFaults, ADeadRankOfAnotherNodeIsNamed) {
  for (const MethodInfo& info : {put(), task(), atomics()}) {
    const std::string error = error_beside(info, beeline_test::WorldKind::processes, config_with(10'000'000'000, 2), 1,
                                           [](beeline::World&) { _exit(3); });
    EXPECT_NE(error.find("rank 1"), std::string::npos) << info.name << ": " << error;
  }
}

}  // namespace

}  // namespace random_access
