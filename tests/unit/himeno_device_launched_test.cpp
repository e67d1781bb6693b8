// SPDX-License-Identifier: Apache-2.0
// The Himeno method in which a kernel launches kernels, compared with the persistent method. Ranks are threads.

#include <gtest/gtest.h>

#include "device_launched.hpp"
#include "tests/support/errors.hpp"
#include "tests/unit/himeno_methods_case.hpp"

namespace himeno {

namespace {

class HimenoDeviceLaunched : public testing::TestWithParam<MethodCase> {};

TEST_P(HimenoDeviceLaunched, HasTheBitsOfTheOthers) {
  if (const std::string why = beeline_test::missing_gpus(GetParam().device, GetParam().ranks); !why.empty())
    GTEST_SKIP() << why;
  // The last number of iterations is more than one control kernel runs.
  expect_same_bits(GetParam(), {find_method(methods(), "persistent"), device_launched()}, {1, 2, 5, 12, 1100});
}

// Slabs of one plane, with both sides in one half; several ranks on one GPU; each rank on its own GPU.
INSTANTIATE_TEST_SUITE_P(Gpus, HimenoDeviceLaunched,
                         testing::Values(MethodCase{{66, 65, 23}, 1, 1, {}, "cuda:0"},
                                         MethodCase{{5, 7, 9}, 7, 1, {}, "cuda:0"},
                                         MethodCase{{66, 65, 23}, 2, 1, {}, "cuda:0"},
                                         MethodCase{{66, 65, 23}, 2, 1, {}, "auto"},
                                         MethodCase{{130, 34, 41}, 4, 1, {}, "auto"}));

TEST(HimenoDeviceLaunchedMethod, NeedsAGpu) {
  constexpr Size size{5, 7, 9};
  beeline::Config config = himeno_config(size, 2);
  config.device = "cpu";
  EXPECT_FALSE(device_launched().reason(config).empty());
  beeline_test::expect_all_passed(beeline_test::run_ranks(
      beeline_test::WorldKind::threads, 2,
      [&](beeline::World& world) {
        Domain domain(world, size);
        beeline_test::check_error(beeline::Status::unavailable, {"need a GPU"},
                                  [&] { static_cast<void>(device_launched().make(domain)); });
        world.barrier();
      },
      config));
}

}  // namespace

}  // namespace himeno
