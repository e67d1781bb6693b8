// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The suite, run in one shape of world: its kind, size and devices.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/conformance/rank_test.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test {

/// Which devices the ranks have: CPUs, GPUs, all the first GPU; or both kinds, with one GPU or two.
enum class Devices { cpu, gpus, one_gpu, cpus_and_a_gpu, cpus_and_two_gpus };

/// A world that the cases run in.
struct WorldShape {
  WorldKind kind;
  int size;
  int host_threads;
  Devices devices;
  bool crowd;               ///< many ranks on few cores: only the cases that suit them
  bool peer_access = true;  ///< false: copies are staged; only the cases that copy
};

/// Names a shape in GoogleTest's lists.
[[nodiscard]] std::string shape_name(const ::testing::TestParamInfo<WorldShape>& info);

/// Runs every case that suits the shape in one world; skips with the reason where the machine cannot.
void run_suite(const WorldShape& shape);
/// The same with these cases.
void run_suite(const WorldShape& shape, const std::vector<Case>& cases);

}  // namespace beeline_test
