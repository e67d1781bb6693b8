// SPDX-License-Identifier: Apache-2.0
// A rank dies, stops or is killed while others need it: their calls end with GASPI_ERROR and its name, the state vector
// shows it, and the others continue in a group without it.
#include <GASPI.h>
#include <GASPI_Ext.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "tests/gaspi/gaspi_ranks.hpp"

namespace beeline_test::gaspi_failure_test {

namespace {

using namespace std::chrono_literals;

constexpr int ranks = 4, victim = 2;

/// Waits until this rank knows of the failure, at most 20 s.
void await_corrupt_state() {
  gaspi_state_t states[ranks];
  for (int tries = 0; tries < 2000; ++tries) {
    GASPI_OK(gaspi_state_vec_get(states));
    if (states[victim] != GASPI_STATE_HEALTHY) {
      for (int other = 0; other < ranks; ++other)
        if (other != victim) BEELINE_CHECK_EQ(GASPI_STATE_HEALTHY, static_cast<int>(states[other]));
      BEELINE_CHECK_EQ(GASPI_STATE_CORRUPT, static_cast<int>(states[victim]));
      return;
    }
    std::this_thread::sleep_for(10ms);
  }
  throw CheckFailure("the state vector does not show the failure after 20 s");
}

/// Survivors make a group, exchange data by all means, and add up.
void continue_without_the_victim(int rank) {
  await_corrupt_state();
  gaspi_group_t group = 0;
  GASPI_OK(gaspi_group_create(&group));
  for (gaspi_rank_t member = 0; member < ranks; ++member)
    if (member != victim) GASPI_OK(gaspi_group_add(group, member));
  GASPI_OK(gaspi_group_commit(group, GASPI_BLOCK));
  GASPI_OK(gaspi_segment_create(9, 4096, group, GASPI_BLOCK, GASPI_MEM_INITIALIZED));
  const int next = rank == 3 ? 0 : rank == 1 ? 3 : 1, previous = rank == 0 ? 3 : rank == 3 ? 1 : 0;
  std::uint64_t* const memory = segment_memory(9);
  for (std::uint64_t round = 1; round <= 20; ++round) {
    memory[0] = 100 * static_cast<std::uint64_t>(rank) + round;
    GASPI_OK(gaspi_write_notify(9, 0, static_cast<gaspi_rank_t>(next), 9, 8, 8, 1,
                                static_cast<gaspi_notification_t>(round), 1, GASPI_BLOCK));
    BEELINE_CHECK_EQ(static_cast<gaspi_notification_t>(round), take_notification(9, 1));
    BEELINE_CHECK_EQ(100 * static_cast<std::uint64_t>(previous) + round, memory[1]);
    GASPI_OK(gaspi_wait(1, GASPI_BLOCK));
    int sum = 0;
    GASPI_OK(gaspi_allreduce(&rank, &sum, 1, GASPI_OP_SUM, GASPI_TYPE_INT, group, GASPI_BLOCK));
    BEELINE_CHECK_EQ(0 + 1 + 3, sum);
  }
  gaspi_atomic_value_t old = 0;
  GASPI_OK(gaspi_atomic_fetch_add(9, 16, 1, 1, &old, GASPI_BLOCK));
  GASPI_OK(gaspi_barrier(group, GASPI_BLOCK));
  if (rank == 1) BEELINE_CHECK_EQ(std::uint64_t{3}, memory[2]);
  GASPI_OK(gaspi_barrier(group, GASPI_BLOCK));
}

/// Calls `call` until it fails, which happens within 20 s and names the victim in the log.
void expect_failure(const std::function<gaspi_return_t()>& call) {
  gaspi_return_t result = GASPI_SUCCESS;
  const auto start = std::chrono::steady_clock::now();
  const std::string log = logged_by([&] {
    while (result == GASPI_SUCCESS || result == GASPI_TIMEOUT) {
      if (std::chrono::steady_clock::now() - start > 20s) throw CheckFailure("no error after 20 s");
      result = call();
    }
  });
  GASPI_EXPECT(GASPI_ERROR, result);
  BEELINE_CHECK_CONTAINS(log, join("rank ", victim));
}

/// What the survivors call when the victim dies.
struct Path {
  const char* name;
  gaspi_return_t (*call)();
};

gaspi_return_t barrier() { return gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK); }
gaspi_return_t allreduce() {
  const int mine = 1;
  int sum = 0;
  return gaspi_allreduce(&mine, &sum, 1, GASPI_OP_SUM, GASPI_TYPE_INT, GASPI_GROUP_ALL, GASPI_BLOCK);
}
gaspi_return_t write_to_the_victim() {
  const gaspi_return_t posted = gaspi_write(0, 0, victim, 0, 4096, 4096, 0, GASPI_BLOCK);
  return posted == GASPI_SUCCESS ? gaspi_wait(0, GASPI_BLOCK) : posted;
}
gaspi_return_t read_from_the_victim() {
  const gaspi_return_t posted = gaspi_read(0, 0, victim, 0, 4096, 4096, 0, GASPI_BLOCK);
  return posted == GASPI_SUCCESS ? gaspi_wait(0, GASPI_BLOCK) : posted;
}
gaspi_return_t atomic_at_the_victim() {
  gaspi_atomic_value_t old = 0;
  return gaspi_atomic_fetch_add(0, 0, victim, 1, &old, GASPI_BLOCK);
}
gaspi_return_t message_to_the_victim() { return gaspi_passive_send(0, 0, victim, 64, GASPI_BLOCK); }
gaspi_return_t ping() { return gaspi_proc_ping(victim, 1000); }

constexpr Path paths[] = {
    {"Barrier", barrier},
    {"Allreduce", allreduce},
    {"Write", write_to_the_victim},
    {"Read", read_from_the_victim},
    {"Atomic", atomic_at_the_victim},
    {"PassiveSend", message_to_the_victim},
    {"Ping", ping},
};

class GaspiRankKilled : public ::testing::TestWithParam<Path> {};

TEST_P(GaspiRankKilled, TheOthersContinue) {
  const Path& path = GetParam();
  for (const int nodes : {1, 2}) {
    expect_gaspi_without(victim, {.ranks = ranks, .nodes = nodes}, [&](int rank) {
      make_segment(0, 1024);
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      if (rank == victim) {
        std::this_thread::sleep_for(30ms);
        die();
      }
      expect_failure(path.call);
      GASPI_OK(gaspi_queue_purge(0, GASPI_BLOCK));
      continue_without_the_victim(rank);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(In, GaspiRankKilled, ::testing::ValuesIn(paths),
                         [](const auto& path) { return path.param.name; });

/// What the victim calls when it dies, and what the survivors call meanwhile.
struct Inside {
  const char* name;
  gaspi_return_t (*of_the_victim)();
  gaspi_return_t (*of_the_others)();
};

gaspi_return_t write_to_all_others() {
  for (gaspi_rank_t other = 0; other < ranks; ++other) {
    const gaspi_offset_t offset = 1024 * gaspi_offset_t{other};
    if (other == victim) continue;
    if (const gaspi_return_t posted = gaspi_write_notify(0, offset, other, 0, offset, 1024, 7, 1, 0, GASPI_BLOCK);
        posted != GASPI_SUCCESS)
      return posted;
  }
  return gaspi_wait(0, GASPI_BLOCK);
}
gaspi_return_t receive_a_message() {
  gaspi_rank_t sender = 0;
  return gaspi_passive_receive(0, 0, &sender, 64, GASPI_BLOCK);
}

constexpr Inside insides[] = {
    {"Barrier", barrier, barrier},
    {"Allreduce", allreduce, allreduce},
    {"Write", write_to_all_others, write_to_the_victim},
    {"PassiveReceive", receive_a_message, message_to_the_victim},
};

class GaspiRankKilledInside : public ::testing::TestWithParam<Inside> {};
INSTANTIATE_TEST_SUITE_P(Of, GaspiRankKilledInside, ::testing::ValuesIn(insides),
                         [](const auto& inside) { return inside.param.name; });

/// Two of the four ranks are on each node. The victim repeats a call, and dies somewhere inside.
TEST_P(GaspiRankKilledInside, TheOthersContinueOnTwoNodes) {
  const Inside& inside = GetParam();
  expect_gaspi_without(victim, {.ranks = ranks, .nodes = 2}, [&](int rank) {
    make_segment(0, 1024);
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    if (rank == victim) {
      std::thread([] {
        std::this_thread::sleep_for(50ms);
        die();
      }).detach();
      for (;;) GASPI_OK(inside.of_the_victim());
    }
    expect_failure(inside.of_the_others);
    GASPI_OK(gaspi_queue_purge(0, GASPI_BLOCK));
    continue_without_the_victim(rank);
  });
}

/// Receivers need no rank in particular: they wait on while others are healthy, and get what these send.
class GaspiFailureNodes : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(On, GaspiFailureNodes, ::testing::Values(1, 2));

TEST_P(GaspiFailureNodes, ReceiversWaitOnWhileOthersAreHealthy) {
  expect_gaspi_without(victim, {.ranks = ranks, .nodes = GetParam()}, [](int rank) {
    std::uint64_t* const memory = make_segment(0, 64);
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    if (rank == victim) {
      std::this_thread::sleep_for(30ms);
      die();
    }
    gaspi_rank_t sender = 99;
    if (rank == 0) {
      GASPI_OK(gaspi_passive_receive(0, 0, &sender, 8, GASPI_BLOCK));
      BEELINE_CHECK_EQ(3, static_cast<int>(sender));
      BEELINE_CHECK_EQ(std::uint64_t{42}, memory[0]);
    }
    if (rank == 1) BEELINE_CHECK_EQ(7U, take_notification(0, 5));
    if (rank == 3) {
      await_corrupt_state();
      std::this_thread::sleep_for(300ms);
      memory[0] = 42;
      GASPI_OK(gaspi_passive_send(0, 0, 0, 8, GASPI_BLOCK));
      GASPI_OK(gaspi_notify(0, 1, 5, 7, 0, GASPI_BLOCK));
      GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
    }
    continue_without_the_victim(rank);
  });
}

TEST_P(GaspiFailureNodes, ProcKillEndsARankThatDoesNotAnswer) {
  expect_gaspi_without(victim, {.ranks = ranks, .nodes = GetParam()}, [](int rank) {
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    if (rank == victim)
      for (;;) ::pause();
    if (rank == 1) {
      GASPI_REFUSED(GASPI_ERR_INV_RANK, "itself", gaspi_proc_kill(1, GASPI_BLOCK));
      GASPI_REFUSED(GASPI_ERR_INV_RANK, "rank 4", gaspi_proc_kill(4, GASPI_BLOCK));
      GASPI_OK(repeat([](gaspi_timeout_t limit) { return gaspi_proc_kill(victim, limit); }, 100));
      GASPI_EXPECT(GASPI_ERROR, gaspi_proc_ping(victim, GASPI_BLOCK));
    }
    continue_without_the_victim(rank);
  });
}

/// A process that was stopped (a machine that hangs) counts as failed after a deadline.
TEST_P(GaspiFailureNodes, AStoppedRankCountsAsFailed) {
  const GaspiRanks how{.ranks = ranks, .nodes = GetParam(), .deadline_s = 2};
  const std::vector<RankOutcome> outcomes = run_processes_for_gaspi(how, [](int rank) {
    GASPI_OK(gaspi_proc_init(GASPI_BLOCK));
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    if (rank == victim) {
      const pid_t process = ::getpid();
      if (::fork() == 0) {  // ends the stopped process when the others have gone on without it
        std::this_thread::sleep_for(8s);
        ::kill(process, SIGKILL);
        ::_exit(0);
      }
      ::kill(process, SIGSTOP);
    }
    expect_failure(barrier);
    continue_without_the_victim(rank);
    GASPI_OK(gaspi_proc_term(GASPI_BLOCK));
  });
  expect_others_passed(victim, outcomes);
}

/// Ranks 0 and 2 call a function before rank 1 does: at each deadline a line says what they wait for. Rank 1 calls a
/// second after the lines that are expected.
TEST(GaspiLateRank, IsNamedAtEachDeadline) {
  expect_gaspi({.ranks = 3, .deadline_s = 2}, [](int rank) {
    const auto create = [] { GASPI_OK(gaspi_segment_create(1, 64, GASPI_GROUP_ALL, GASPI_BLOCK, GASPI_MEM_DEFAULT)); };
    const auto barrier_of_all = [] { GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK)); };
    const auto reduce = [] { GASPI_OK(allreduce()); };
    if (rank == 1) {
      std::this_thread::sleep_for(5200ms);
      barrier_of_all();
      std::this_thread::sleep_for(3100ms);
      create();
      std::this_thread::sleep_for(3100ms);
      return reduce();
    }
    const std::string log = logged_by(barrier_of_all);
    BEELINE_CHECK_CONTAINS(log, "barrier of group 0; missing: rank 1\n");
    BEELINE_CHECK(log.find("barrier") + 40 < log.rfind("barrier"));  // in two lines
    BEELINE_CHECK_CONTAINS(logged_by(create), "calls for segment 1; missing: rank 1\n");
    BEELINE_CHECK_CONTAINS(logged_by(reduce), "all-reduce of group 0; missing: rank 1\n");
  });
}

}  // namespace

}  // namespace beeline_test::gaspi_failure_test
