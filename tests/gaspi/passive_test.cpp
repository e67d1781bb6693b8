// SPDX-License-Identifier: Apache-2.0
// Passive messages, which wait without a processor, and atomics.
#include <GASPI.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <vector>

#include "tests/gaspi/gaspi_ranks.hpp"

namespace beeline_test::gaspi_passive_test {

namespace {

using namespace std::chrono_literals;

TEST(GaspiPassive, MessagesOfAllRanksAreReceived) {
  for (const int nodes : {1, 2}) {
    expect_gaspi({.ranks = 4, .nodes = nodes}, [](int rank) {
      constexpr int messages = 25;
      std::uint64_t* const memory = make_segment(0, 200);
      if (rank > 0) {
        for (std::uint64_t message = 0; message < messages; ++message) {
          std::fill(memory, memory + 100, 1000 * static_cast<std::uint64_t>(rank) + message);
          GASPI_OK(gaspi_passive_send(0, 0, 0, 800, GASPI_BLOCK));
        }
        return;
      }
      std::uint64_t next[4] = {};
      for (int message = 0; message < 3 * messages; ++message) {
        gaspi_rank_t sender = 99;
        GASPI_OK(gaspi_passive_receive(0, 80, &sender, 800, GASPI_BLOCK));
        BEELINE_CHECK(sender > 0 && sender < 4);
        for (int i = 0; i < 100; ++i) BEELINE_CHECK_EQ(1000 * sender + next[sender], memory[10 + i]);
        ++next[sender];
      }
      BEELINE_CHECK_EQ(std::uint64_t{0}, memory[9]);
    });
  }
}

TEST(GaspiPassive, BothEndsContinueAfterATimeout) {
  Latecomer latecomer(1);
  expect_gaspi({}, [&](int rank) {
    std::uint64_t* const memory = make_segment(0, 16);
    gaspi_size_t most = 0;
    GASPI_OK(gaspi_passive_transfer_size_max(&most));
    BEELINE_CHECK(most >= 1024);
    for (const int late : {0, 1}) {
      memory[0] = 5;
      memory[8] = 0;
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      gaspi_rank_t sender = 99;
      latecomer.make(rank == late, [&](gaspi_timeout_t limit) {
        return rank == 0 ? gaspi_passive_send(0, 0, 1, 8, limit) : gaspi_passive_receive(0, 64, &sender, 8, limit);
      });
      if (rank == 1) BEELINE_CHECK(sender == 0 && memory[8] == 5);
    }
    if (rank == 1) {
      gaspi_rank_t sender = 99;
      GASPI_EXPECT(GASPI_TIMEOUT, gaspi_passive_receive(0, 0, &sender, 8, GASPI_TEST));
    }
  });
}

/// The sender deletes the segment before the message is received: its call fails, and the receiver says so in the log.
TEST(GaspiPassive, AMessageOfADeletedSegmentFails) {
  for (const int nodes : {1, 2}) {
    expect_gaspi({.nodes = nodes}, [](int rank) {
      std::uint64_t* const memory = make_segment(0, 16);
      make_segment(1, 16);
      gaspi_rank_t sender = 99;
      if (rank == 0) {
        GASPI_EXPECT(GASPI_TIMEOUT, gaspi_passive_send(1, 0, 1, 8, 10));
        GASPI_OK(gaspi_segment_delete(1));
        GASPI_OK(gaspi_segment_alloc(1, 64, GASPI_MEM_DEFAULT));  // too short for the message
        GASPI_OK(gaspi_segment_delete(1));
      }
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      if (rank == 1) {
        gaspi_return_t result = GASPI_ERROR;
        const std::string log = logged_by([&] { result = gaspi_passive_receive(0, 0, &sender, 8, 200); });
        GASPI_EXPECT(GASPI_TIMEOUT, result);
        BEELINE_CHECK_CONTAINS(log, "a message of rank 0 is dropped, since that rank has deleted segment 1");
      }
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      if (rank == 0) {
        GASPI_OK(gaspi_segment_alloc(1, 128, GASPI_MEM_DEFAULT));
        GASPI_REFUSED(GASPI_ERROR, "segment 1 was deleted meanwhile", gaspi_passive_send(1, 0, 1, 8, GASPI_BLOCK));
        memory[0] = 17;
        return GASPI_OK(gaspi_passive_send(0, 0, 1, 8, GASPI_BLOCK));
      }
      GASPI_OK(gaspi_passive_receive(0, 0, &sender, 8, GASPI_BLOCK));
      BEELINE_CHECK_EQ(std::uint64_t{17}, memory[0]);
    });
  }
}

double processor_seconds() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

/// A receiver that waits, and the threads that the library has beside it, leave the processor to others.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double most_share = 0.05;  // sanitized code takes several times as long
#else
constexpr double most_share = 0.01;
#endif

TEST(GaspiPassive, AWaitingReceiverTakesOnePercentOfAProcessor) {
  expect_gaspi({}, [](int rank) {
    make_segment(0, 16);
    if (rank == 0) {
      std::this_thread::sleep_for(2s);
      return GASPI_OK(gaspi_passive_send(0, 0, 1, 8, GASPI_BLOCK));
    }
    gaspi_rank_t sender = 99;
    const double before = processor_seconds();
    const auto start = std::chrono::steady_clock::now();
    GASPI_OK(gaspi_passive_receive(0, 0, &sender, 8, GASPI_BLOCK));
    const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double used = processor_seconds() - before;
    BEELINE_CHECK(elapsed > 1.5);
    if (used > most_share * elapsed) throw CheckFailure(join("took ", used, " s of ", elapsed, " s"));
  });
}

TEST(GaspiPassive, BadCallsAreRefused) {
  expect_gaspi({}, [](int rank) {
    make_segment(0, 8);
    gaspi_size_t most = 0;
    GASPI_OK(gaspi_passive_transfer_size_max(&most));
    GASPI_OK(gaspi_segment_alloc(1, most + 1, GASPI_MEM_DEFAULT));
    const auto peer = static_cast<gaspi_rank_t>(1 - rank);
    gaspi_rank_t sender = 99;
    GASPI_REFUSED(GASPI_ERR_INV_SEG, "segment 9", gaspi_passive_send(9, 0, peer, 8, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_LOC_OFF, "offset 57", gaspi_passive_send(0, 57, peer, 8, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_RANK, "rank 2", gaspi_passive_send(0, 0, 2, 8, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_COMMSIZE, "0 bytes", gaspi_passive_send(0, 0, peer, 0, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_COMMSIZE, std::to_string(most), gaspi_passive_send(1, 0, peer, most + 1, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_SEG, "segment 9", gaspi_passive_receive(9, 0, &sender, 8, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_LOC_OFF, "offset 57", gaspi_passive_receive(0, 57, &sender, 8, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "gaspi_passive_receive", gaspi_passive_receive(0, 0, nullptr, 8, GASPI_BLOCK));
    BEELINE_CHECK_EQ(99, static_cast<int>(sender));
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    // A message that is too long for the receiver stays.
    if (rank == 0) return GASPI_OK(gaspi_passive_send(0, 0, 1, 32, GASPI_BLOCK));
    gaspi_return_t result = GASPI_TIMEOUT;
    const std::string log = logged_by([&] {
      while (result == GASPI_TIMEOUT) result = gaspi_passive_receive(0, 0, &sender, 8, 10);
    });
    BEELINE_CHECK_CONTAINS(log, "32 bytes");
    GASPI_EXPECT(GASPI_ERR_INV_SIZE, result);
    GASPI_OK(gaspi_passive_receive(0, 0, &sender, 32, GASPI_BLOCK));
  });
}

TEST(GaspiAtomics, CountAndLock) {
  for (const int nodes : {1, 2}) {
    expect_gaspi({.ranks = 4, .nodes = nodes}, [](int rank) {
      constexpr std::uint64_t turns = 40;
      std::uint64_t* const memory = make_segment(0, 16);  // of rank 1: a counter, a lock, and what the lock guards
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      std::vector<std::uint64_t> drawn;
      for (std::uint64_t turn = 0; turn < turns; ++turn) {
        gaspi_atomic_value_t old = 0;
        GASPI_OK(gaspi_atomic_fetch_add(0, 64, 1, 3, &old, GASPI_BLOCK));
        drawn.push_back(old);
      }
      BEELINE_CHECK(std::is_sorted(drawn.begin(), drawn.end(), std::less_equal<>()));
      const auto mine = static_cast<gaspi_atomic_value_t>(1 + rank);
      for (std::uint64_t turn = 0; turn < turns / 4; ++turn) {
        gaspi_atomic_value_t holder = 99;
        while (holder != 0) GASPI_OK(gaspi_atomic_compare_swap(0, 72, 1, 0, mine, &holder, GASPI_BLOCK));
        GASPI_OK(gaspi_read(0, 0, 1, 0, 80, 8, 0, GASPI_BLOCK));
        GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
        ++memory[0];
        GASPI_OK(gaspi_write_notify(0, 0, 1, 0, 80, 8, 0, 1, 0, GASPI_BLOCK));
        GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
        // The write is there before the lock is free: a read of the same queue returns it.
        for (std::uint64_t seen = 0; seen != memory[0];) {
          GASPI_OK(gaspi_read(0, 8, 1, 0, 80, 8, 0, GASPI_BLOCK));
          GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
          seen = memory[1];
        }
        GASPI_OK(gaspi_atomic_compare_swap(0, 72, 1, mine, 0, &holder, GASPI_BLOCK));
        BEELINE_CHECK_EQ(mine, holder);
      }
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      if (rank != 1) return;
      BEELINE_CHECK_EQ(3 * 4 * turns, memory[8]);
      BEELINE_CHECK_EQ(std::uint64_t{0}, memory[9]);
      BEELINE_CHECK_EQ(turns, memory[10]);
    });
  }
}

/// The memory is an array of rank 1's program, which other processes cannot map.
TEST(GaspiAtomics, OnMemoryOfAnotherProgram) {
  for (const int nodes : {1, 2}) {
    expect_gaspi({.ranks = 4, .nodes = nodes}, [](int rank) {
      constexpr std::uint64_t turns = 20;
      alignas(64) std::array<std::uint64_t, 8> words{};
      GASPI_OK(gaspi_segment_use(3, words.data(), sizeof words, GASPI_GROUP_ALL, GASPI_BLOCK, GASPI_MEMORY_HOST));
      std::vector<std::uint64_t> drawn;
      for (std::uint64_t turn = 0; turn < turns; ++turn) {
        gaspi_atomic_value_t old = 99;
        const auto add = [&](gaspi_timeout_t limit) { return gaspi_atomic_fetch_add(3, 16, 1, 5, &old, limit); };
        GASPI_OK(turn % 2 == 0 ? add(GASPI_BLOCK) : repeat(add, turn % 4 == 1 ? GASPI_TEST : 1));
        drawn.push_back(old);
      }
      BEELINE_CHECK(std::is_sorted(drawn.begin(), drawn.end(), std::less_equal<>()));
      gaspi_atomic_value_t holder = 99;
      const auto mine = static_cast<gaspi_atomic_value_t>(1 + rank);
      while (holder != 0) GASPI_OK(gaspi_atomic_compare_swap(3, 24, 1, 0, mine, &holder, GASPI_BLOCK));
      GASPI_OK(gaspi_atomic_compare_swap(3, 24, 1, mine, 0, &holder, GASPI_BLOCK));
      BEELINE_CHECK_EQ(mine, holder);
      GASPI_REFUSED(GASPI_ERR_INV_SEG, "segment 4", gaspi_atomic_fetch_add(4, 16, 1, 5, &holder, GASPI_BLOCK));
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      const auto word = [&](std::size_t i) {
        return std::atomic_ref(words[i]).load();
      };  // atomics order no plain loads
      if (rank == 1) BEELINE_CHECK(word(2) == 5 * 4 * turns && word(3) == 0);
      GASPI_OK(gaspi_segment_delete(3));
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    });
  }
}

TEST(GaspiAtomics, BadCallsAreRefused) {
  expect_gaspi({}, [](int rank) {
    const std::uint64_t* const memory = make_segment(0, 8);
    const auto peer = static_cast<gaspi_rank_t>(1 - rank);
    gaspi_atomic_value_t old = 5;
    GASPI_REFUSED(GASPI_ERR_UNALIGN_OFF, "4", gaspi_atomic_fetch_add(0, 4, peer, 1, &old, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_REM_OFF, "offset 64", gaspi_atomic_fetch_add(0, 64, peer, 1, &old, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_REM_OFF, "offset",
                  gaspi_atomic_fetch_add(0, ~gaspi_offset_t{0} - 7, peer, 1, &old, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_SEG, "segment 9", gaspi_atomic_fetch_add(9, 0, peer, 1, &old, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_RANK, "rank 2", gaspi_atomic_fetch_add(0, 0, 2, 1, &old, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "gaspi_atomic_fetch_add",
                  gaspi_atomic_fetch_add(0, 0, peer, 1, nullptr, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_UNALIGN_OFF, "12", gaspi_atomic_compare_swap(0, 12, peer, 0, 1, &old, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_REM_OFF, "offset 64", gaspi_atomic_compare_swap(0, 64, peer, 0, 1, &old, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "gaspi_atomic_compare_swap",
                  gaspi_atomic_compare_swap(0, 0, peer, 0, 1, nullptr, GASPI_BLOCK));
    BEELINE_CHECK_EQ(gaspi_atomic_value_t{5}, old);
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    BEELINE_CHECK(std::all_of(memory, memory + 8, [](std::uint64_t word) { return word == 0; }));
  });
}

}  // namespace

}  // namespace beeline_test::gaspi_passive_test
