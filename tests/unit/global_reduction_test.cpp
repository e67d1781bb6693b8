// SPDX-License-Identifier: Apache-2.0
// The global reduction: every method that runs here, bit for bit against the serial reference. Ranks are threads.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "method.hpp"
#include "problem.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"

namespace global_reduction {

namespace {

using beeline::Status;
using beeline_test::check_error;

TEST(GlobalReductionProblem, NumbersOfValues) {
  EXPECT_EQ(parse_counts("1,4K,16M"), (std::vector<std::size_t>{1, 4096, std::size_t{16} << 20}));
  for (const char* bad : {"0", "-1", "1,,2", "4k", "1025G", "x"})
    check_error(Status::invalid_argument, {"--values: '", "is no number of values"},
                [&] { static_cast<void>(parse_counts(bad)); });
  check_error(Status::invalid_argument, {"--values: no number is named"}, [] { static_cast<void>(parse_counts("")); });
}

TEST(GlobalReductionProblem, TheReferenceDoesNotDependOnItsThreads) {
  double sum = 0;
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    for (std::size_t i = 0; i < 1001; ++i) sum += static_cast<double>(initial_value(5, rank, i));
  for (const int threads : {1, 2, 7}) EXPECT_EQ(serial_sum(1001, 3, 5, threads), sum);
}

TEST(GlobalReductionProblem, TooLargeIsRefused) {
  beeline::Config config;
  config.size = 4;
  const apps::Machine small{{}, std::size_t{1} << 30};
  check_error(Status::no_resource, {"268435456 values on each of 4 ranks", "this machine has 1.0"},
              [&] { fit(config, std::size_t{1} << 28, small); });
}

/// A number of ranks, which are threads, and their shape.
struct MethodCase {
  int ranks, host_threads;
  unsigned host_blocks;
  const char* device = "cpu";
};

std::ostream& operator<<(std::ostream& out, const MethodCase& c) {
  return out << c.ranks << " ranks of " << c.host_blocks << " blocks of " << c.host_threads << " threads on "
             << c.device;
}

class GlobalReductionMethods : public testing::TestWithParam<MethodCase> {};

void run_methods(beeline::World& world, std::size_t count, unsigned host_blocks) {
  Values values(world, count, host_blocks);
  std::uint32_t set = 0;
  for (const MethodInfo& info : methods()) {
    if (!info.reason(world.config()).empty()) continue;
    const std::unique_ptr<Method> method = info.make(values);
    for (const int reductions : {1, 20}) {
      values.fill(++set);
      method->run(reductions);
      EXPECT_EQ(values.total(), serial_sum(count, world.size(), set, 1)) << info.name << ", " << count << " values";
    }
  }
}

TEST_P(GlobalReductionMethods, HaveTheReferencesBits) {
  const MethodCase& c = GetParam();
  if (const std::string why = beeline_test::missing_gpus(c.device, c.ranks); !why.empty()) GTEST_SKIP() << why;
  beeline::Config config = beeline_test::test_config();
  fit(config, 100'003, {{}, SIZE_MAX});
  config.slot_shift = 32, config.device = c.device, config.host_threads = c.host_threads;
  beeline_test::expect_all_passed(beeline_test::run_ranks(
      beeline_test::WorldKind::threads, c.ranks,
      [&](beeline::World& world) {
        for (const std::size_t count : {1, 3, 5, 1000, 4097, 100'003}) run_methods(world, count, c.host_blocks);
      },
      config));
}

INSTANTIATE_TEST_SUITE_P(Host, GlobalReductionMethods,
                         testing::Values(MethodCase{1, 1, 1}, MethodCase{2, 1, 3}, MethodCase{3, 2, 2},
                                         MethodCase{4, 1, 1}, MethodCase{7, 1, 1}));
INSTANTIATE_TEST_SUITE_P(Gpu, GlobalReductionMethods,
                         testing::Values(MethodCase{1, 1, 1, "auto"}, MethodCase{2, 1, 1, "auto"},
                                         MethodCase{4, 1, 1, "auto"}, MethodCase{3, 1, 1, "cuda:0"}));

}  // namespace

}  // namespace global_reduction
