// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How many ranks a test program has killed: its last line says so, for each kind of device.

#include <gtest/gtest.h>

#include <cstdio>

namespace beeline_test {

class Killings : public ::testing::Environment {
 public:
  static void count(bool on_gpu) { ++(on_gpu ? on_gpus : on_hosts); }
  void TearDown() override { std::printf("ranks killed: %d on CPUs, %d on GPUs\n", on_hosts, on_gpus); }

 private:
  static inline int on_hosts = 0, on_gpus = 0;
};

/// GoogleTest owns it, and runs it after the last test.
[[maybe_unused]] inline ::testing::Environment* const killings = ::testing::AddGlobalTestEnvironment(new Killings);

}  // namespace beeline_test
