// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Worlds in which this machine acts as two nodes, whose ranks communicate over UCX or another transport.

#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <string>
#include <vector>

#include "beeline/transports/transports.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test {

/// A configuration for four ranks: 0 and 1 are on one node, 2 and 3 on the other.
[[nodiscard]] inline beeline::Config split_config(std::int64_t deadline_ns = 20'000'000'000,
                                                  const std::string& transports = "ucx") {
  beeline::Config config = test_config("cpu");
  config.split_nodes = 2;
  config.transports = transports;
  config.deadline_ns = deadline_ns;
  return config;
}

/// As expect_all_passed, except that the victim must have killed itself by SIGKILL.
inline void expect_others_passed(std::size_t victim, const std::vector<RankOutcome>& outcomes) {
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank)
    if (rank == victim)
      EXPECT_EQ(SIGKILL, outcomes[rank].signal) << outcomes[rank].failure;
    else
      EXPECT_TRUE(outcomes[rank].passed()) << "rank " << rank << ": " << outcomes[rank].failure;
}

/// Why a transport is missing. A child looks: this process does not open UCX, so that later children may open another.
[[nodiscard]] inline std::string missing_transport(const std::string& transports) {
  static std::map<std::string, std::string> missing;
  if (const auto known = missing.find(transports); known != missing.end()) return known->second;
  ChildProcess child([](const std::string& list) { return beeline::no_network_reason(list); });
  child.tell(transports);
  while (!child.read_more()) {
  }
  return missing[transports] = child.answer();
}

#define SKIP_WITHOUT(transports) \
  if (const std::string why = beeline_test::missing_transport(transports); !why.empty()) GTEST_SKIP() << why
#define SKIP_WITHOUT_UCX() SKIP_WITHOUT("ucx")

}  // namespace beeline_test
