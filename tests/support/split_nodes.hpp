// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Worlds on this machine as two nodes, whose ranks meet over UCX.

#include <gtest/gtest.h>

#include <string>

#include "beeline/network/network.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test {

/// Of four ranks, 0 and 1 are on one node, 2 and 3 on the other.
[[nodiscard]] inline beeline::Config split_config(std::int64_t deadline_ns = 20'000'000'000) {
  beeline::Config config = test_config("cpu");
  config.split_nodes = 2;
  config.deadline_ns = deadline_ns;
  return config;
}

/// Asked in a child: this process does not open UCX, so that its other children may open another.
[[nodiscard]] inline std::string missing_ucx() {
  static const std::string missing = [] {
    ChildProcess child([](const std::string&) { return beeline::no_network_reason(); });
    child.tell("");
    while (!child.read_more()) {
    }
    return child.answer();
  }();
  return missing;
}

#define SKIP_WITHOUT_UCX() \
  if (const std::string why = beeline_test::missing_ucx(); !why.empty()) GTEST_SKIP() << why

}  // namespace beeline_test
