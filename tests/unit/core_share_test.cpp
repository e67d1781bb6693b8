// SPDX-License-Identifier: Apache-2.0
// Which core a host rank of an application stays on. Each case runs in a child, whose cores change.
#include "common/core_share.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>

#include <functional>
#include <string>

#include "tests/support/child_process.hpp"

namespace beeline_test {

namespace {

cpu_set_t own_cores() {
  cpu_set_t found;
  CPU_ZERO(&found);
  EXPECT_EQ(0, ::sched_getaffinity(0, sizeof found, &found));
  return found;
}

beeline::Config config_of(int rank, int size) {
  beeline::Config config;
  config.device = "cpu";
  config.rank = rank, config.size = size;
  return config;
}

/// What a child answers.
std::string in_child(const std::function<std::string()>& body) {
  ChildProcess child([&](const std::string&) { return body(); });
  child.tell("");
  while (!child.read_more()) {
    pollfd answer{child.descriptor(), POLLIN, 0};
    ::poll(&answer, 1, 1000);
  }
  return child.answer();
}

/// "BEFORE -> NOW -> LATER": what stay_on_a_core returns, and the number of cores then and after leave_core.
std::string share_of(const beeline::Config& config) {
  const int before = apps::stay_on_a_core(config);
  const cpu_set_t bound = own_cores();
  apps::leave_core();
  const cpu_set_t free = own_cores();
  return std::to_string(before) + " -> " + std::to_string(CPU_COUNT(&bound)) + " -> " +
         std::to_string(CPU_COUNT(&free));
}

TEST(CoreShare, BindsRanksThatLeaveNoCoreOver) {
  const cpu_set_t cores = own_cores();
  const int count = CPU_COUNT(&cores);
  const std::string all = std::to_string(count);
  const std::string bound = all + " -> 1 -> " + all, unbound = "0 -> " + all + " -> " + all;
  for (const int rank : {0, count - 1, count, 2 * count})
    EXPECT_EQ(bound, in_child([&] { return share_of(config_of(rank, 2 * count + 1)); })) << rank;
  if (count > 1) {
    EXPECT_EQ(unbound, in_child([&] { return share_of(config_of(0, count - 1)); })) << "a core is left over";
  }
  beeline::Config nodes = config_of(0, count), host_threads = nodes, threads = nodes, hosts = nodes;
  nodes.split_nodes = 2, host_threads.host_threads = 2, threads.threads = true, hosts.rendezvous = "10.0.0.1:5000";
  for (const beeline::Config& each : {nodes, host_threads, threads, hosts})
    EXPECT_EQ(unbound, in_child([&] { return share_of(each); }));
}

TEST(CoreShare, LeavesTheCoresOfALauncherThatBinds) {
  const cpu_set_t cores = own_cores();
  if (CPU_COUNT(&cores) < 2) GTEST_SKIP() << "one core: no launcher can bind to a part";
  EXPECT_EQ("0 -> 1 -> 1", in_child([&] {
              cpu_set_t first;
              CPU_ZERO(&first);
              for (std::size_t core = 0; CPU_COUNT(&first) == 0; ++core)
                if (CPU_ISSET(core, &cores)) CPU_SET(core, &first);
              EXPECT_EQ(0, ::sched_setaffinity(0, sizeof first, &first));
              return share_of(config_of(0, 4));
            }));
}

}  // namespace

}  // namespace beeline_test
