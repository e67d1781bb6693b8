// SPDX-License-Identifier: Apache-2.0
// Which problems the Himeno application refuses before it creates a world.

#include <gtest/gtest.h>

#include "domain.hpp"
#include "memory_budget.hpp"
#include "tests/support/errors.hpp"

namespace himeno {

namespace {

using beeline::Status;
using beeline_test::check_error;

constexpr std::size_t gibibyte = std::size_t{1} << 30;

beeline::Config config_of(int ranks, bool threads = false) {
  beeline::Config config;
  config.size = ranks, config.threads = threads;
  return config;
}

Machine machine_with(int gpus, std::size_t gpu_gibibytes) {
  Machine machine{{}, 64 * gibibyte};
  for (int gpu = 0; gpu < gpus; ++gpu)
    machine.gpus.push_back(
        {beeline::DeviceKind::gpu, gpu, "GPU-" + std::to_string(gpu), "fake", 132, gpu_gibibytes * gibibyte});
  return machine;
}

// Size XL needs 14 GiB for arrays, and 17 GiB for the reference.
constexpr Size xl{512, 512, 1024};

TEST(HimenoRoom, HeapsAreThoseOfTheProblem) {
  beeline::Config config = config_of(2);
  fit(config, xl, true, machine_with(0, 0));
  EXPECT_EQ(config.heap_bytes, Domain::heaps(xl, 2).symmetric_bytes);
  config.heap_bytes = 40 * gibibyte;
  fit(config, xl, true, machine_with(0, 0));
  EXPECT_EQ(config.heap_bytes, 40 * gibibyte);
}

TEST(HimenoRoom, TooLargeForTheHost) {
  beeline::Config config = config_of(2);
  Machine machine{{}, 16 * gibibyte};
  check_error(Status::no_resource, {"size 512x512x1024 on 2 ranks", "this machine has 16.0", "or --no-verify"},
              [&] { fit(config, xl, true, machine); });
  EXPECT_EQ(config.heap_bytes, 0u);
  fit(config, xl, false, machine);
  check_error(Status::no_resource, {"size 1024x1024x1024", "choose a smaller size"}, [&] {
    fit(config, {1024, 1024, 1024}, false, machine);
  });
}

TEST(HimenoRoom, TooLargeForAGpu) {
  beeline::Config config = config_of(1);
  check_error(Status::no_resource, {"14.0 GiB of GPU memory a rank", "a rank has 8.0"},
              [&] { fit(config, xl, true, machine_with(2, 8)); });
  config = config_of(2);
  fit(config, xl, true, machine_with(2, 8));
}

TEST(HimenoRoom, ThreadsShareAGpu) {
  beeline::Config config = config_of(4, true);
  check_error(Status::no_resource, {"3.5 GiB of GPU memory a rank", "a rank has 3.0"},
              [&] { fit(config, xl, true, machine_with(2, 6)); });
  fit(config, xl, true, machine_with(2, 8));
  // If there are more processes than GPUs here, others may see more GPUs, or run on CPUs.
  config = config_of(4);
  fit(config, xl, true, machine_with(2, 2));
}

}  // namespace

}  // namespace himeno
