// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tests of two ranks in every kind of world: processes and threads, on CPUs and on GPUs.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>

#include "tests/support/ranks.hpp"

namespace beeline_test {

struct PairShape {
  WorldKind kind;
  const char* device;
  int gpus;  ///< that processes need; threads share one
};

class PairTest : public ::testing::TestWithParam<PairShape> {
 protected:
  /// Runs `body` on both ranks, or skips the test with the reason.
  static void run_pair(const std::function<void(beeline::World&)>& body, double deadline_s) {
    std::string why;
    const PairShape& shape = GetParam();
    if (shape.gpus > 0 && gpus_here(&why) < (shape.kind == WorldKind::threads ? 1 : shape.gpus))
      GTEST_SKIP() << "GPUs are missing: " << why;
    if (shape.kind == WorldKind::processes && under_thread_sanitizer)
      GTEST_SKIP() << "ThreadSanitizer sees one process";
    beeline::Config config = test_config();
    config.device = shape.device;
    config.deadline_ns = static_cast<std::int64_t>(deadline_s * 1e9);
    expect_all_passed(run_ranks(shape.kind, 2, body, config, 60));
  }
};

/// Processes first: once threads have used CUDA, this process can no longer fork.
inline const auto every_pair =
    ::testing::Values(PairShape{WorldKind::processes, "cpu", 0}, PairShape{WorldKind::processes, "auto", 2},
                      PairShape{WorldKind::threads, "cpu", 0}, PairShape{WorldKind::threads, "auto", 1});

/// Names a case, such as `ThreadsGpu`.
inline std::string name_of_pair(const ::testing::TestParamInfo<PairShape>& info) {
  const std::string kind = info.param.kind == WorldKind::threads ? "Threads" : "Processes";
  return kind + (info.param.gpus > 0 ? "Gpu" : "Cpu");
}

}  // namespace beeline_test
