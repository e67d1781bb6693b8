// SPDX-License-Identifier: Apache-2.0
// Notifications, and queues that threads share and that fill.
#include <GASPI.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <vector>

#include "tests/gaspi/gaspi_ranks.hpp"

namespace beeline_test::gaspi_queue_test {

namespace {

using namespace std::chrono_literals;

TEST(GaspiNotifications, OfAWholeSegmentAreWaitedFor) {
  expect_gaspi({}, [](int rank) {
    make_segment(0, 8);
    gaspi_number_t most = 0;
    GASPI_OK(gaspi_notification_num(&most));
    BEELINE_CHECK_EQ(65'536U, most);
    gaspi_notification_id_t found = 1;
    GASPI_EXPECT(GASPI_TIMEOUT, gaspi_notify_waitsome(0, 0, most, &found, GASPI_TEST));
    const auto before = std::chrono::steady_clock::now();
    GASPI_EXPECT(GASPI_TIMEOUT, gaspi_notify_waitsome(0, 0, most, &found, 50));
    BEELINE_CHECK(std::chrono::steady_clock::now() - before >= 49ms);
    BEELINE_CHECK_EQ(1, static_cast<int>(found));
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    const auto peer = static_cast<gaspi_rank_t>(1 - rank);
    for (const gaspi_notification_id_t id : std::initializer_list<gaspi_notification_id_t>{65'535, 0, 1, 32'768}) {
      GASPI_OK(gaspi_notify(0, peer, id, 1U + id, 0, GASPI_BLOCK));
      GASPI_OK(gaspi_notify_waitsome(0, 0, most, &found, GASPI_BLOCK));
      BEELINE_CHECK_EQ(id, found);
      gaspi_notification_t value = 0;
      GASPI_OK(gaspi_notify_reset(0, found, &value));
      BEELINE_CHECK_EQ(1U + id, value);
      GASPI_OK(gaspi_notify_reset(0, found, &value));
      BEELINE_CHECK_EQ(0U, value);
      GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    }
    GASPI_OK(gaspi_notify_waitsome(0, 0, 0, &found, GASPI_BLOCK));  // nothing to wait for
    GASPI_OK(gaspi_notify(0, peer, 5, 0xFFFF'FFFF, 0, GASPI_BLOCK));
    BEELINE_CHECK_EQ(0xFFFF'FFFFU, take_notification(0, 5));
    GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
  });
}

/// Threads wait for overlapping ranges: each notification is given to one of them.
TEST(GaspiNotifications, AreGivenToOneThread) {
  expect_gaspi({}, [](int rank) {
    constexpr unsigned count = 400;
    make_segment(0, 8);
    if (rank == 1) {
      for (unsigned id = 0; id < count; ++id) {
        GASPI_OK(gaspi_notify(0, 0, static_cast<gaspi_notification_id_t>(id), 1 + id, 0, GASPI_BLOCK));
        if (id % 50 == 49) GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
      }
      return;
    }
    std::atomic<unsigned> sum{0}, taken{0};
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        const auto first = static_cast<gaspi_notification_id_t>(100 * (thread % 3));
        while (taken < count) {
          gaspi_notification_id_t found = 0;
          gaspi_notification_t value = 0;
          if (gaspi_notify_waitsome(0, first, count - first, &found, 1) != GASPI_SUCCESS) continue;
          GASPI_OK(gaspi_notify_reset(0, found, &value));
          if (value == 0) continue;
          BEELINE_CHECK_EQ(1U + found, value);
          sum += value;
          ++taken;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    BEELINE_CHECK_EQ(count * (count + 1) / 2, sum.load());
  });
}

TEST(GaspiQueues, AreCreatedAndDeleted) {
  expect_gaspi({}, [](int rank) {
    make_segment(0, 64);
    gaspi_number_t queues = 0, most = 0, size = 9;
    GASPI_OK(gaspi_queue_num(&queues));
    GASPI_OK(gaspi_queue_max(&most));
    BEELINE_CHECK(queues >= 1 && most >= 16 && queues < most);
    gaspi_queue_id_t queue = 200;
    GASPI_OK(gaspi_queue_create(&queue, GASPI_BLOCK));
    const auto peer = static_cast<gaspi_rank_t>(1 - rank);
    GASPI_OK(gaspi_write(0, 0, peer, 0, 64, 64, queue, GASPI_BLOCK));
    GASPI_OK(gaspi_write_notify(0, 0, peer, 0, 64, 64, 0, 1, queue, GASPI_BLOCK));
    GASPI_OK(gaspi_queue_size(queue, &size));
    BEELINE_CHECK(size == 2 || size == 3);
    GASPI_REFUSED(GASPI_ERROR, "queue", gaspi_queue_delete(queue));
    GASPI_OK(gaspi_wait(queue, GASPI_BLOCK));
    GASPI_OK(gaspi_queue_size(queue, &size));
    BEELINE_CHECK_EQ(0U, size);
    take_notification(0, 0);
    GASPI_OK(gaspi_queue_purge(queue, GASPI_BLOCK));
    GASPI_OK(gaspi_queue_delete(queue));
    GASPI_REFUSED(GASPI_ERR_INV_QUEUE, "queue", gaspi_write(0, 0, peer, 0, 64, 64, queue, GASPI_BLOCK));
    std::vector<gaspi_queue_id_t> made;
    for (gaspi_number_t i = queues; i < most; ++i) {
      GASPI_OK(gaspi_queue_create(&queue, GASPI_BLOCK));
      made.push_back(queue);
    }
    GASPI_REFUSED(GASPI_ERROR, "queue", gaspi_queue_create(&queue, GASPI_BLOCK));
    for (const gaspi_queue_id_t each : made) GASPI_OK(gaspi_queue_delete(each));
  });
}

/// A full queue refuses whole requests, and takes more after gaspi_wait.
TEST(GaspiQueues, ThatAreFullTakeNothing) {
  for (const int nodes : {1, 2}) {
    expect_all_passed(run_processes_for_gaspi({.nodes = nodes}, [](int rank) {
      gaspi_config_t config;
      GASPI_OK(gaspi_config_get(&config));
      config.queue_size_max = 8;
      GASPI_OK(gaspi_config_set(config));
      GASPI_OK(gaspi_proc_init(GASPI_BLOCK));
      std::uint64_t* const memory = make_segment(0, 200);
      memory[100] = 1;
      const auto peer = static_cast<gaspi_rank_t>(1 - rank);
      for (gaspi_offset_t i = 0; i < 8; ++i) GASPI_OK(gaspi_write(0, 800, peer, 0, 8 * i, 8, 0, GASPI_BLOCK));
      GASPI_EXPECT(GASPI_QUEUE_FULL, gaspi_write(0, 800, peer, 0, 64, 8, 0, GASPI_BLOCK));
      GASPI_EXPECT(GASPI_QUEUE_FULL, gaspi_notify(0, peer, 0, 1, 0, GASPI_BLOCK));
      GASPI_EXPECT(GASPI_QUEUE_FULL, gaspi_read(0, 0, peer, 0, 64, 8, 0, GASPI_TEST));
      GASPI_OK(gaspi_write(0, 800, peer, 0, 72, 8, 1, GASPI_BLOCK));  // another queue has room
      GASPI_OK(gaspi_wait(1, GASPI_BLOCK));
      GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
      // Six of eight entries are taken: a list of three does not fit, and none of it is posted.
      for (gaspi_offset_t i = 0; i < 6; ++i) GASPI_OK(gaspi_write(0, 800, peer, 0, 8 * i, 8, 0, GASPI_BLOCK));
      const gaspi_segment_id_t segments[3] = {};
      const gaspi_offset_t from[3] = {800, 800, 800}, to[3] = {160, 168, 176};
      const gaspi_size_t size[3] = {8, 8, 8};
      GASPI_EXPECT(GASPI_QUEUE_FULL, gaspi_write_list(3, segments, from, peer, segments, to, size, 0, GASPI_BLOCK));
      GASPI_OK(gaspi_notify(0, peer, 3, 1, 0, GASPI_BLOCK));
      take_notification(0, 3);
      BEELINE_CHECK(memory[20] == 0 && memory[21] == 0 && memory[8] == 0 && memory[7] == 1);
      GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      GASPI_OK(gaspi_proc_term(GASPI_BLOCK));
    }));
  }
}

/// Threads post to one queue and wait for it at the same time.
TEST(GaspiQueues, AreSharedByThreads) {
  for (const int nodes : {1, 2}) {
    expect_gaspi({.nodes = nodes}, [](int rank) {
      constexpr std::size_t threads = 6, writes = 150;
      std::uint64_t* const in = make_segment(0, threads * writes);
      std::uint64_t* const out = make_segment(1, threads * writes);
      std::iota(out, out + threads * writes, 1);
      const auto peer = static_cast<gaspi_rank_t>(1 - rank);
      std::vector<std::thread> posters;
      for (std::size_t thread = 0; thread < threads; ++thread) {
        posters.emplace_back([=] {
          for (std::size_t i = 0; i < writes; ++i) {
            const gaspi_offset_t offset = 8 * (thread * writes + i);
            GASPI_OK(gaspi_write(1, offset, peer, 0, offset, 8, 0, GASPI_BLOCK));
            if (i % 10 == 9)
              GASPI_OK(repeat([](gaspi_timeout_t limit) { return gaspi_wait(0, limit); },
                              thread % 2 == 0 ? GASPI_TEST : GASPI_BLOCK));
          }
        });
      }
      for (std::thread& poster : posters) poster.join();
      GASPI_OK(gaspi_notify(0, peer, 0, 1, 0, GASPI_BLOCK));
      take_notification(0, 0);
      for (std::size_t i = 0; i < threads * writes; ++i) BEELINE_CHECK_EQ(std::uint64_t{1 + i}, in[i]);
      GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
    });
  }
}

}  // namespace

}  // namespace beeline_test::gaspi_queue_test
