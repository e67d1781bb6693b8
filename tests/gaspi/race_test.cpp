// SPDX-License-Identifier: Apache-2.0
// Events that come between the steps of a call: a message that overtakes the service threads, a rank that dies while
// data are on the way, a fork.
#include <GASPI.h>
#include <GASPI_Ext.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <future>
#include <thread>
#include <vector>

#include "tests/gaspi/gaspi_ranks.hpp"
#include "tests/support/stopped_process.hpp"

namespace beeline_test::gaspi_race_test {

namespace {

using namespace std::chrono_literals;

/// A sender sends from a segment that it has just made: its message may reach the receiver earlier than the agreement
/// of the service threads.
TEST(GaspiNewSegment, SendsPassiveMessagesAtOnce) {
  expect_gaspi({.ranks = 3}, [](int rank) {
    constexpr int messages = 60;
    make_segment(0, 64);
    if (rank == 0) {
      gaspi_rank_t sender = 99;
      for (int message = 0; message < 2 * messages; ++message)
        GASPI_OK(gaspi_passive_receive(0, 0, &sender, 64, 10'000));
      return;
    }
    const auto own = static_cast<gaspi_segment_id_t>(rank);
    for (int message = 0; message < messages; ++message) {
      GASPI_OK(gaspi_segment_alloc(own, 64, GASPI_MEM_INITIALIZED));
      GASPI_OK(gaspi_passive_send(own, 0, 0, 64, GASPI_BLOCK));
      GASPI_OK(gaspi_segment_delete(own));
    }
  });
}

/// A rank that has registered a segment with another may tell it so at once.
TEST(GaspiNewSegment, IsWrittenAtOnceByARankThatItIsRegisteredWith) {
  expect_gaspi({.ranks = 3}, [](int rank) {
    make_segment(0, 64);
    for (int round = 0; round < 60 && rank < 2; ++round) {
      if (rank == 1) {
        GASPI_OK(gaspi_segment_alloc(5, 64, GASPI_MEM_INITIALIZED));
        GASPI_OK(gaspi_segment_register(5, 0, GASPI_BLOCK));
        GASPI_OK(gaspi_notify(0, 0, 0, 1, 0, GASPI_BLOCK));
        take_notification(5, 1);
        GASPI_OK(gaspi_segment_delete(5));
      } else {
        take_notification(0, 0);
        GASPI_OK(gaspi_write_notify(0, 0, 1, 5, 0, 64, 1, 1, 0, GASPI_BLOCK));
      }
      GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
    }
  });
}

/// Threads of a rank write to its segment while another one deletes it and makes it again: each write is done, or
/// refused since there is no segment, and none touches memory that was unmapped.
TEST(GaspiNewSegment, IsDeletedWhileThreadsWriteToIt) {
  expect_gaspi({.ranks = 2}, [](int rank) {
    constexpr std::uint32_t threads = 3, rounds = 40, bytes = 512;
    constexpr gaspi_segment_id_t changing = 5;
    std::fill_n(make_segment(0, bytes / 8), bytes / 8, 42);
    std::atomic<std::uint32_t> written{0};
    std::atomic<bool> is_over{false};
    const auto write_on = [&](gaspi_queue_id_t queue) {
      while (!is_over) {
        const gaspi_return_t result = gaspi_write(0, 0, static_cast<gaspi_rank_t>(rank), changing,
                                                  gaspi_offset_t{queue} * bytes, bytes, queue, GASPI_BLOCK);
        if (result != GASPI_ERR_INV_SEG) GASPI_OK(result);
        if (result == GASPI_SUCCESS) ++written;
        if (result != GASPI_SUCCESS) std::this_thread::sleep_for(50us);
        GASPI_OK(gaspi_wait(queue, GASPI_BLOCK));
      }
    };
    const auto make_and_await_writes = [&] {
      if (gaspi_segment_alloc(changing, threads * bytes, GASPI_MEM_INITIALIZED) != GASPI_SUCCESS) return false;
      const std::uint32_t before = written;
      const auto end = std::chrono::steady_clock::now() + 10s;
      while (written < before + 10 * threads && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      return written > before;
    };
    bool are_made = true;
    static_cast<void>(logged_by([&] {  // a line for each refused write
      std::vector<std::future<void>> writers;
      for (std::uint32_t thread = 0; thread < threads; ++thread)
        writers.push_back(std::async(std::launch::async, write_on, static_cast<gaspi_queue_id_t>(thread)));
      for (std::uint32_t round = 0; round < rounds && are_made; ++round)
        are_made = make_and_await_writes() && gaspi_segment_delete(changing) == GASPI_SUCCESS;
      are_made = are_made && make_and_await_writes();
      is_over = true;
      for (std::future<void>& writer : writers) writer.get();
    }));
    BEELINE_CHECK(are_made);
    const std::uint64_t* const segment = segment_memory(changing);
    BEELINE_CHECK(std::count(segment, segment + threads * bytes / 8, 42) >= bytes / 8);
  });
}

/// Threads of rank 1 wait for notifications of its own segment while other ranks delete theirs, of the same id: the
/// deletions end at once, not when the waits do.
TEST(GaspiSegmentOfAnother, IsDeletedWhileThreadsWaitForNotifications) {
  for (const int nodes : {1, 3}) {
    expect_gaspi({.ranks = 3, .nodes = nodes, .deadline_s = 10}, [](int rank) {
      make_segment(0, 8);
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      if (rank == 1) {
        const auto await = [](gaspi_notification_id_t id) { BEELINE_CHECK_EQ(7U, take_notification(0, id)); };
        std::vector<std::future<void>> waiting;
        for (gaspi_notification_id_t id = 0; id < 4; ++id) waiting.push_back(std::async(std::launch::async, await, id));
        for (std::future<void>& each : waiting) each.get();
      } else {
        std::this_thread::sleep_for(100ms);
        const auto start = std::chrono::steady_clock::now();
        GASPI_OK(gaspi_segment_delete(0));
        BEELINE_CHECK(std::chrono::steady_clock::now() - start < 5s);
        for (gaspi_notification_id_t id = 0; id < 2; ++id)
          GASPI_OK(
              gaspi_notify(0, 1, static_cast<gaspi_notification_id_t>(rank == 0 ? id : id + 2), 7, 0, GASPI_BLOCK));
        GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
      }
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    });
  }
}

constexpr int ranks = 4, victim = 3;

/// Ranks other than `victim` form a group and repeat `body(rank)` until some time after the victim's death.
void go_on_during_a_death(int rank, const std::function<void()>& body) {
  gaspi_group_t group = 0;
  GASPI_OK(gaspi_group_create(&group));
  for (gaspi_rank_t member = 0; member < victim; ++member) GASPI_OK(gaspi_group_add(group, member));
  if (rank != victim) GASPI_OK(gaspi_group_commit(group, GASPI_BLOCK));
  GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
  if (rank == victim) {
    std::this_thread::sleep_for(50ms);
    die();
  }
  const auto end = std::chrono::steady_clock::now() + 500ms;
  for (int is_over = 0; is_over == 0;) {
    body();
    const int mine = std::chrono::steady_clock::now() > end ? 1 : 0;
    GASPI_OK(gaspi_allreduce(&mine, &is_over, 1, GASPI_OP_MIN, GASPI_TYPE_INT, group, GASPI_BLOCK));
  }
  gaspi_state_t states[ranks];
  GASPI_OK(gaspi_state_vec_get(states));
  BEELINE_CHECK_EQ(GASPI_STATE_CORRUPT, static_cast<int>(states[victim]));
  GASPI_OK(gaspi_barrier(group, GASPI_BLOCK));
}

TEST(GaspiDeathOfAnother, LosesNoPassiveMessage) {
  expect_gaspi_without(victim, {.ranks = ranks, .nodes = 2}, [](int rank) {
    make_segment(0, 64);
    go_on_during_a_death(rank, [rank] {
      gaspi_rank_t sender = 99;
      if (rank != 0) return GASPI_OK(gaspi_passive_send(0, 0, 0, 64, GASPI_BLOCK));
      for (int message = 0; message < 2; ++message) GASPI_OK(gaspi_passive_receive(0, 128, &sender, 64, GASPI_BLOCK));
    });
  });
}

/// An atomic whose answer was lost may have been done; it then fails, and is not done a second time.
TEST(GaspiDeathOfAnother, RepeatsNoAtomic) {
  expect_gaspi_without(victim, {.ranks = ranks, .nodes = 2}, [](int rank) {
    make_segment(0, 8);
    gaspi_atomic_value_t done = 0, unknown = 0, sum = 0;
    go_on_during_a_death(rank, [&] {
      gaspi_atomic_value_t before = 0;
      const gaspi_return_t result = gaspi_atomic_fetch_add(0, 0, 2, 1, &before, GASPI_BLOCK);
      if (result == GASPI_SUCCESS) ++done;
      if (result == GASPI_ERROR) ++unknown;
    });
    BEELINE_CHECK(unknown <= 1);
    GASPI_OK(gaspi_atomic_fetch_add(0, 8, 2, done, &sum, GASPI_BLOCK));
    GASPI_OK(gaspi_atomic_fetch_add(0, 16, 2, done + unknown, &sum, GASPI_BLOCK));
    GASPI_OK(gaspi_atomic_fetch_add(0, 24, 2, 1, &sum, GASPI_BLOCK));
    if (rank != 2) return;
    while (sum != victim) GASPI_OK(gaspi_atomic_fetch_add(0, 24, 2, 0, &sum, GASPI_BLOCK));
    gaspi_atomic_value_t seen[3];  // atomics order no plain loads
    for (gaspi_offset_t word = 0; word < 3; ++word)
      GASPI_OK(gaspi_atomic_fetch_add(0, 8 * word, 2, 0, &seen[word], GASPI_BLOCK));
    BEELINE_CHECK(seen[1] <= seen[0] && seen[0] <= seen[2]);
  });
}

TEST(GaspiPing, ContinuesAfterATimeoutOfNothing) {
  expect_gaspi({.ranks = 2}, [](int rank) {
    const auto peer = static_cast<gaspi_rank_t>(1 - rank);
    GASPI_OK(repeat([=](gaspi_timeout_t limit) { return gaspi_proc_ping(peer, limit); }, GASPI_TEST));
  });
}

/// A member that has left a barrier by a time-out keeps the group until the barrier has ended: in the deletion the
/// others would wait for it.
TEST(GaspiOpenBarrier, KeepsItsGroup) {
  expect_gaspi({.ranks = 2}, [](int rank) {
    gaspi_group_t group = 0;
    GASPI_OK(gaspi_group_create(&group));
    for (gaspi_rank_t member = 0; member < 2; ++member) GASPI_OK(gaspi_group_add(group, member));
    GASPI_OK(gaspi_group_commit(group, GASPI_BLOCK));
    if (rank == 0) {
      GASPI_EXPECT(GASPI_TIMEOUT, gaspi_barrier(group, GASPI_TEST));
      GASPI_REFUSED(GASPI_ERR_ACTIVE_COLL, "barrier", gaspi_group_delete(group));
    }
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    GASPI_OK(gaspi_barrier(group, GASPI_BLOCK));
    GASPI_OK(gaspi_group_delete(group));
  });
}

/// A rank that comes later than a deadline is waited for, since it is healthy.
TEST(GaspiLateRank, IsWaitedForBeyondADeadline) {
  expect_all_passed(run_processes_for_gaspi({.ranks = 2, .deadline_s = 1}, [](int rank) {
    if (rank == 1) std::this_thread::sleep_for(2500ms);
    GASPI_OK(gaspi_proc_init(GASPI_BLOCK));
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    GASPI_OK(gaspi_proc_term(GASPI_BLOCK));
  }));
}

/// Waits for the end of a child, at most 20 s; returns its status.
int end_of(pid_t child) {
  int status = 0;
  for (int tries = 0; tries < 2000; ++tries) {
    if (::waitpid(child, &status, WNOHANG) == child) return status;
    std::this_thread::sleep_for(10ms);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  throw CheckFailure("a child of fork does not end");
}

TEST(GaspiFork, AChildIsNoRankAndEnds) {
  expect_gaspi({.ranks = 2}, [](int) {
    const pid_t exits = ::fork();
    if (exits == 0) std::exit(0);
    BEELINE_CHECK(WIFEXITED(end_of(exits)));
    const pid_t calls = ::fork();
    if (calls == 0) ::_exit(gaspi_segment_alloc(3, 64, GASPI_MEM_INITIALIZED));
    const int status = end_of(calls);
    BEELINE_CHECK(WIFEXITED(status));
    GASPI_EXPECT(GASPI_ERR_NOINIT, WEXITSTATUS(status));
  });
}

/// Stops this process for some time, which is longer than calls of others may take; a child makes it continue.
constexpr std::chrono::seconds stop = 3s;
constexpr std::chrono::milliseconds longest_call = 1500ms;
void stop_this_process() {
  const pid_t process = ::getpid();
  if (::fork() == 0) {
    std::this_thread::sleep_for(stop);
    ::kill(process, SIGCONT);
    ::_exit(0);
  }
  ::kill(process, SIGSTOP);
}

/// The process of rank 1, for rank 0. Collective; overwrites the first two words of segment 0.
pid_t process_of_rank_1(int rank) {
  std::uint64_t* const memory = segment_memory(0);
  memory[0] = static_cast<std::uint64_t>(::getpid());
  GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
  if (rank == 0) {
    GASPI_OK(gaspi_read(0, 8, 1, 0, 0, 8, 0, GASPI_BLOCK));
    GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
  }
  GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
  return static_cast<pid_t>(memory[1]);
}

/// A process on another node that is stopped holds no call longer than its time-out; the same calls
/// continue afterwards, and an atomic is done once.
TEST(GaspiStoppedPeer, HoldsReadsAndAtomicsForTheirTimeout) {
  expect_gaspi({.nodes = 2}, [](int rank) {
    constexpr gaspi_timeout_t limit = 50;
    std::uint64_t* const memory = make_segment(0, 16);
    const pid_t stopped = process_of_rank_1(rank);
    memory[0] = static_cast<std::uint64_t>(rank) + 40;
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    if (rank == 1) {
      stop_this_process();
    } else {
      await_stop(stopped);
      gaspi_atomic_value_t old = 99;
      const auto start = std::chrono::steady_clock::now();
      GASPI_EXPECT(GASPI_TIMEOUT, gaspi_atomic_fetch_add(0, 64, 1, 3, &old, limit));
      GASPI_EXPECT(GASPI_TIMEOUT, gaspi_atomic_fetch_add(0, 64, 1, 3, &old, GASPI_TEST));
      GASPI_EXPECT(GASPI_TIMEOUT, gaspi_read(0, 8, 1, 0, 0, 8, 0, limit));
      BEELINE_CHECK(std::chrono::steady_clock::now() - start < longest_call);
      const auto add = [&](gaspi_timeout_t within) { return gaspi_atomic_fetch_add(0, 64, 1, 3, &old, within); };
      GASPI_OK(repeat(add, limit));
      BEELINE_CHECK_EQ(gaspi_atomic_value_t{0}, old);
      GASPI_OK(repeat([](gaspi_timeout_t within) { return gaspi_read(0, 8, 1, 0, 0, 8, 0, within); }, limit));
      GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
      BEELINE_CHECK_EQ(std::uint64_t{41}, memory[1]);
      const gaspi_segment_id_t segments[] = {0, 0};
      const gaspi_offset_t local[] = {16, 24}, remote[] = {0, 64};
      const gaspi_size_t sizes[] = {8, 8};
      GASPI_OK(repeat(
          [&](gaspi_timeout_t within) {
            return gaspi_read_list_notify(2, segments, local, 1, segments, remote, sizes, 0, 5, 0, within);
          },
          GASPI_TEST));
      BEELINE_CHECK_EQ(1U, take_notification(0, 5));
      BEELINE_CHECK(memory[2] == 41 && memory[3] == 3);
    }
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    if (rank == 1) BEELINE_CHECK_EQ(std::uint64_t{3}, memory[8]);
  });
}

/// Writes to it fill the engine's ring; a call with a time-out ends in time also then, and continues later.
TEST(GaspiStoppedPeer, HoldsWritesForTheirTimeout) {
  expect_gaspi({.nodes = 2}, [](int rank) {
    constexpr gaspi_timeout_t limit = 30;
    constexpr gaspi_number_t listed = 200;
    constexpr gaspi_offset_t writes = 700;
    std::uint64_t* const memory = make_segment(0, 2 * writes);
    const pid_t stopped = process_of_rank_1(rank);
    if (rank == 1) {
      stop_this_process();
      BEELINE_CHECK_EQ(9U, take_notification(0, 0));
      for (gaspi_offset_t i = 0; i < writes; ++i) BEELINE_CHECK_EQ(i + 1, memory[writes + i]);
      return;
    }
    await_stop(stopped);
    for (gaspi_offset_t i = 0; i < writes; ++i) memory[i] = i + 1;
    int timeouts = 0;
    const auto in_time = [&](const std::function<gaspi_return_t(gaspi_timeout_t)>& call) {
      for (gaspi_return_t result = GASPI_TIMEOUT; result == GASPI_TIMEOUT;) {
        const auto start = std::chrono::steady_clock::now();
        result = call(limit);
        BEELINE_CHECK(std::chrono::steady_clock::now() - start < longest_call);
        if (result == GASPI_TIMEOUT) ++timeouts;
        BEELINE_CHECK(result == GASPI_TIMEOUT || result == GASPI_SUCCESS);
      }
    };
    const auto to = [](gaspi_offset_t i) { return 8 * (writes + i); };
    for (gaspi_offset_t i = 0; i < writes - listed; ++i)
      in_time([&](gaspi_timeout_t within) { return gaspi_write(0, 8 * i, 1, 0, to(i), 8, 0, within); });
    const std::vector<gaspi_segment_id_t> segments(listed);
    const std::vector<gaspi_size_t> sizes(listed, 8);
    std::vector<gaspi_offset_t> from, there;
    for (gaspi_offset_t i = writes - listed; i < writes; ++i) from.push_back(8 * i), there.push_back(to(i));
    in_time([&](gaspi_timeout_t within) {
      return gaspi_write_list_notify(listed, segments.data(), from.data(), 1, segments.data(), there.data(),
                                     sizes.data(), 0, 0, 9, 0, within);
    });
    BEELINE_CHECK(timeouts > 0);
    in_time([](gaspi_timeout_t within) { return gaspi_wait(0, within); });
  });
}

/// Another thread is in a call that needs a rank which terminates instead.
TEST(GaspiTermination, EndsSetUpCallsOfOtherThreads) {
  expect_all_passed(run_processes_for_gaspi({}, [](int rank) {
    GASPI_OK(gaspi_proc_init(GASPI_BLOCK));
    std::future<gaspi_return_t> create;
    const std::string log = logged_by([&] {
      if (rank == 0)
        create = std::async(std::launch::async, [] {
          return gaspi_segment_create(0, 64, GASPI_GROUP_ALL, GASPI_BLOCK, GASPI_MEM_INITIALIZED);
        });
      std::this_thread::sleep_for(100ms);
      GASPI_OK(gaspi_proc_term(GASPI_BLOCK));
      if (rank == 0) GASPI_EXPECT(GASPI_ERROR, create.get());
    });
    if (rank == 0) BEELINE_CHECK_CONTAINS(log, "gaspi_segment_create: the process has left the world");
  }));
}

}  // namespace

}  // namespace beeline_test::gaspi_race_test
