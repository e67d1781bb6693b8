// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The suite, run in one shape of world: its kind, size and devices.

#include <gtest/gtest.h>

#include <string>

#include "tests/support/ranks.hpp"

namespace beeline_test {

enum class Devices { cpu, gpus, one_gpu };

/// A world that the cases run in.
struct WorldShape {
  WorldKind kind;
  int size;
  int host_threads;
  Devices devices;
  bool crowd;  ///< many ranks on few cores: only the cases that suit them
};

/// Names a shape in GoogleTest's lists.
[[nodiscard]] std::string shape_name(const ::testing::TestParamInfo<WorldShape>& info);

/// Runs every case that suits the shape in one world; skips with the reason where the machine cannot.
void run_suite(const WorldShape& shape);

}  // namespace beeline_test
