// SPDX-License-Identifier: Apache-2.0
// The Jacobi application: how ranks share its rows, its serial reference, and every method against the reference, bit
// for bit. Ranks are threads.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/reference.hpp"
#include "method.hpp"
#include "problem.hpp"
#include "residual.hpp"
#include "serial.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"

namespace jacobi {

void PrintTo(const Size& size, std::ostream* out) { *out << size.columns << 'x' << size.rows; }

namespace {

using beeline::Status;
using beeline_test::check_error;

TEST(JacobiProblem, SizesAreOfARankOrOfAll) {
  EXPECT_EQ(parse_sizes("16", 3), (std::vector<Size>{{16, 48}}));
  EXPECT_EQ(parse_sizes("1K,7x1", 2), (std::vector<Size>{{1024, 2048}, {7, 1}}));
  EXPECT_EQ(parse_sizes("1M", 1), (std::vector<Size>{{1 << 20, 1 << 20}}));
  for (const char* bad : {"x", "0", "5x", "x5", "5x0", "-4", "5x7x9", "2M", "5X7", "1,,2", "1.5"})
    check_error(Status::invalid_argument, {"--size: '", "is no size; valid: N", "COLUMNSxROWS"},
                [&] { static_cast<void>(parse_sizes(bad, 2)); });
  check_error(Status::invalid_argument, {"--size: no grid is named"}, [] { static_cast<void>(parse_sizes("", 2)); });
}

TEST(JacobiProblem, SlabsCoverTheRowsOnce) {
  for (std::size_t rows = 1; rows < 40; ++rows)
    for (int ranks = 1; ranks <= static_cast<int>(rows); ++ranks) {
      std::size_t next = 1;
      for (int rank = 0; rank < ranks; ++rank) {
        const Slab slab = slab_of({5, rows}, ranks, rank), largest = slab_of({5, rows}, ranks, 0);
        EXPECT_EQ(slab.first, next);
        EXPECT_GE(slab.rows, 1u);
        EXPECT_LE(largest.rows - slab.rows, 1u);
        next += slab.rows;
      }
      EXPECT_EQ(next, rows + 1);
    }
}

TEST(JacobiProblem, WhatDoesNotFitIsRefused) {
  beeline::Config config;
  config.size = 4;
  const apps::Machine small{{}, std::size_t{1} << 30};
  check_error(Status::invalid_argument, {"4 ranks for 3 rows (grid 9x3)", "at least one"}, [&] {
    fit(config, {{9, 4}, {9, 3}}, true, small);
  });
  check_error(Status::no_resource, {"a grid of 65536x65536 on 4 ranks", "this machine has 1.0"}, [&] {
    fit(config, {{65536, 65536}}, false, small);
  });
  fit(config, {{16, 16}, {2000, 2000}, {16, 16}}, true, small);
  EXPECT_GE(config.heap_bytes, Domain::field_bytes({2000, 2000}, 4));
}

/// The iteration by its mathematical definition, as a recursive function.
float value_after(const Size& size, int iterations, std::size_t row, std::size_t column) {
  const bool boundary = row == 0 || row > size.rows || column == 0 || column > size.columns;
  if (boundary || iterations == 0) return initial_value(row, column);
  const auto before = [&](std::size_t r, std::size_t c) { return value_after(size, iterations - 1, r, c); };
  return 0.25f *
         ((before(row - 1, column) + before(row + 1, column)) + (before(row, column - 1) + before(row, column + 1)));
}

TEST(JacobiSerial, IsTheMeanOfFourNeighbours) {
  const Size size{6, 4};
  for (const int iterations : {0, 1, 2, 5}) {
    Serial serial(size, 1);
    serial.advance(iterations);
    float change = 0;
    for (std::size_t row = 0; row < size.rows + 2; ++row)
      for (std::size_t column = 0; column < size.columns + 2; ++column) {
        const float value = value_after(size, iterations, row, column);
        ASSERT_EQ(serial.field()[row * (size.columns + 2) + column], value) << row << ' ' << column;
        if (iterations > 0) change = std::max(change, std::abs(value - value_after(size, iterations - 1, row, column)));
      }
    EXPECT_EQ(serial.max_change(), change);
  }
}

TEST(JacobiSerial, ThreadsChangeNothing) {
  Serial one({9, 14}, 1), many({9, 14}, 5);
  one.advance(3);
  many.advance(1);
  many.advance(2);
  EXPECT_EQ(one.field(), many.field());
}

/// A grid, and the ranks that share it.
struct MethodCase {
  Size size;
  int ranks, host_threads;
  HostGrid grid{};
  const char* device = "cpu";
};

std::ostream& operator<<(std::ostream& out, const MethodCase& c) {
  return out << c.size.columns << 'x' << c.size.rows << " on " << c.ranks << " ranks of " << c.grid.blocks
             << " blocks of " << c.host_threads << ", " << c.device;
}

beeline::Config config_of(const MethodCase& c) {
  beeline::Config config = beeline_test::test_config();
  const apps::Machine any{{}, std::size_t{1} << 36};
  config.size = c.ranks, config.slot_shift = 32, config.device = c.device, config.host_threads = c.host_threads;
  fit(config, {c.size}, false, any);
  return config;
}

/// Checks every method: its runs end on either parity, continue where the previous run ended, and follow runs without
/// communication, of which no data may remain.
void run_methods(beeline::World& world, const MethodCase& c) {
  Domain domain(world, c.size, c.grid);
  Residual residual(domain);
  const int most = beeline_test::under_thread_sanitizer ? 5 : 33;
  for (const MethodInfo& info : methods()) {
    const std::unique_ptr<Method> method = info.make(domain);
    for (const std::vector<int>& runs : {std::vector{1}, {2}, {3, 1, 4}, {most}}) {
      domain.reset();
      Serial serial(c.size, 1);
      for (const int iterations : runs) {
        method->run(iterations, true);
        serial.advance(iterations);
      }
      EXPECT_EQ(residual.max_change(), serial.max_change()) << info.name;
      const std::vector<float> field = domain.gather();
      if (world.rank() == 0) {
        EXPECT_EQ(apps::checksum(field), apps::checksum(serial.field())) << info.name;
      }
      domain.reset();
      method->run(3, false);
    }
  }
}

class JacobiMethods : public testing::TestWithParam<MethodCase> {};

TEST_P(JacobiMethods, HaveTheReferencesBits) {
  const MethodCase& c = GetParam();
  if (const std::string why = beeline_test::missing_gpus(c.device, c.ranks); !why.empty()) GTEST_SKIP() << why;
  beeline_test::expect_all_passed(beeline_test::run_ranks(
      beeline_test::WorldKind::threads, c.ranks, [&](beeline::World& world) { run_methods(world, c); }, config_of(c)));
}

// One rank, ranks with fewer rows than others, ranks with a single row, one column.
INSTANTIATE_TEST_SUITE_P(Ranks, JacobiMethods,
                         testing::Values(MethodCase{{7, 9}, 1, 1}, MethodCase{{7, 9}, 2, 1}, MethodCase{{33, 11}, 4, 1},
                                         MethodCase{{5, 7}, 7, 1}, MethodCase{{1, 5}, 3, 1}, MethodCase{{1, 1}, 1, 1},
                                         MethodCase{{66, 3}, 2, 1}, MethodCase{{300, 40}, 3, 2}));

// As on GPUs: several segments in a row, the last of them shorter; more blocks than segments, and fewer; blocks of
// several threads.
INSTANTIATE_TEST_SUITE_P(ManyBlocks, JacobiMethods,
                         testing::Values(MethodCase{{30, 9}, 2, 1, {3, 3}}, MethodCase{{30, 9}, 3, 1, {2, 1}},
                                         MethodCase{{30, 3}, 3, 2, {7, 2}}, MethodCase{{6, 5}, 2, 3, {5, 1}}));

INSTANTIATE_TEST_SUITE_P(Gpus, JacobiMethods,
                         testing::Values(MethodCase{{300, 40}, 1, 1, {}, "cuda:0"},
                                         MethodCase{{5, 7}, 3, 1, {}, "cuda:0"},
                                         MethodCase{{2500, 301}, 2, 1, {}, "cuda:0"},
                                         MethodCase{{1023, 65}, 2, 1, {}, "auto"},
                                         MethodCase{{5000, 1003}, 4, 1, {}, "auto"}));

TEST(JacobiDomain, AHaloThatDoesNotArriveShows) {
  const MethodCase c{{12, 8}, 2, 1};
  beeline_test::expect_all_passed(beeline_test::run_ranks(
      beeline_test::WorldKind::threads, 2,
      [&](beeline::World& world) {
        Domain domain(world, c.size);
        for (const MethodInfo& info : methods()) {
          const std::unique_ptr<Method> method = info.make(domain);
          Serial serial(c.size, 1);
          serial.advance(64);
          domain.reset();
          method->run(64, false);
          const std::vector<float> field = domain.gather();
          if (world.rank() == 0) {
            EXPECT_NE(apps::checksum(field), apps::checksum(serial.field())) << info.name;
          }
        }
      },
      config_of(c)));
}

}  // namespace

}  // namespace jacobi
