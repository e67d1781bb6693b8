// SPDX-License-Identifier: Apache-2.0
// Segments: on some ranks only, of different sizes, in memory of the program, deleted while others use them.
#include <GASPI.h>
#include <GASPI_Ext.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/gaspi/gaspi_ranks.hpp"

namespace beeline_test::gaspi_segment_test {

namespace {

using namespace std::chrono_literals;

TEST(GaspiSegments, AreCreatedListedAndDeleted) {
  expect_gaspi({}, [](int) {
    gaspi_number_t number = 9, most = 0;
    GASPI_OK(gaspi_segment_num(&number));
    BEELINE_CHECK_EQ(0U, number);
    GASPI_OK(gaspi_segment_max(&most));
    BEELINE_CHECK(most >= 32);
    for (const gaspi_segment_id_t id : std::initializer_list<gaspi_segment_id_t>{7, 3, 31}) {
      const std::uint64_t* const memory = make_segment(id, 1000);
      BEELINE_CHECK(std::all_of(memory, memory + 1000, [](std::uint64_t word) { return word == 0; }));
    }
    GASPI_OK(gaspi_segment_num(&number));
    BEELINE_CHECK_EQ(3U, number);
    gaspi_segment_id_t ids[3] = {99, 99, 99};
    GASPI_OK(gaspi_segment_list(2, ids));
    BEELINE_CHECK(ids[0] == 3 && ids[1] == 7 && ids[2] == 99);
    GASPI_OK(gaspi_segment_list(3, ids));
    BEELINE_CHECK_EQ(31, static_cast<int>(ids[2]));
    gaspi_segment_id_t free_id = 0;
    GASPI_OK(gaspi_segment_avail_local(&free_id));
    BEELINE_CHECK(free_id != 3 && free_id != 7 && free_id != 31);
    GASPI_OK(gaspi_segment_delete(7));
    GASPI_OK(gaspi_segment_num(&number));
    BEELINE_CHECK_EQ(2U, number);
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    // The id is free again.
    make_segment(7, 10)[0] = 1;
  });
}

/// Each rank writes to a segment that only one rank has, and whose size only that rank has chosen.
TEST(GaspiSegments, MayExistOnSomeRanksAndDifferInSize) {
  for (const int nodes : {1, 2}) {
    expect_gaspi({.ranks = 4, .nodes = nodes}, [](int rank) {
      const std::size_t mine = 100 * static_cast<std::size_t>(rank + 1);
      std::uint64_t* const source = make_segment(0, mine);
      std::fill(source, source + mine, rank);
      std::uint64_t* target = nullptr;
      if (rank == 2) {
        GASPI_OK(gaspi_segment_alloc(5, 4 * 8, GASPI_MEM_INITIALIZED));
        target = segment_memory(5);
        for (gaspi_rank_t other = 0; other < 4; ++other)
          if (other != 3) GASPI_OK(gaspi_segment_register(5, other, GASPI_BLOCK));
      }
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      // The last word of the larger segment is there for the others, too.
      const auto larger = static_cast<gaspi_rank_t>(3);
      GASPI_OK(gaspi_read(0, 0, larger, 0, 399 * 8, 8, 0, GASPI_BLOCK));
      GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
      BEELINE_CHECK_EQ(std::uint64_t{3}, source[0]);
      source[0] = static_cast<std::uint64_t>(rank);
      GASPI_REFUSED(GASPI_ERR_INV_REM_OFF, "offset", gaspi_read(0, 0, 0, 0, 100 * 8, 8, 0, GASPI_BLOCK));
      if (rank == 3)
        GASPI_REFUSED(GASPI_ERR_INV_SEG, "segment 5",
                      gaspi_write(0, 0, 2, 5, static_cast<gaspi_offset_t>(rank) * 8, 8, 0, GASPI_BLOCK));
      else
        GASPI_OK(gaspi_write_notify(0, 0, 2, 5, static_cast<gaspi_offset_t>(rank) * 8, 8,
                                    static_cast<gaspi_notification_id_t>(rank), 1, 0, GASPI_BLOCK));
      GASPI_REFUSED(GASPI_ERR_INV_SEG, "segment 5", gaspi_write(0, 0, 1, 5, 0, 8, 0, GASPI_BLOCK));
      gaspi_size_t size = 0;
      GASPI_OK(gaspi_segment_size(0, 3, &size));
      BEELINE_CHECK_EQ(3200UL, size);
      if (rank != 2) return GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
      for (gaspi_notification_id_t other = 0; other < 3; ++other) take_notification(5, other);
      for (std::uint64_t other = 0; other < 3; ++other) BEELINE_CHECK_EQ(other, target[other]);
      BEELINE_CHECK_EQ(std::uint64_t{0}, target[3]);
      GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
    });
  }
}

TEST(GaspiSegments, ThatAreLocalAreSourcesAndTargets) {
  expect_gaspi({}, [](int rank) {
    make_segment(0, 8)[0] = static_cast<std::uint64_t>(10 + rank);
    GASPI_OK(gaspi_segment_alloc(1, 64, GASPI_MEM_INITIALIZED));
    std::uint64_t* const local = segment_memory(1);
    local[1] = static_cast<std::uint64_t>(20 + rank);
    const auto other = static_cast<gaspi_rank_t>(1 - rank);
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    GASPI_OK(gaspi_read(1, 0, other, 0, 0, 8, 0, GASPI_BLOCK));
    GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
    BEELINE_CHECK_EQ(static_cast<std::uint64_t>(10 + other), local[0]);
    GASPI_OK(gaspi_write_notify(1, 8, other, 0, 16, 8, 0, 1, 0, GASPI_BLOCK));
    take_notification(0, 0);
    BEELINE_CHECK_EQ(static_cast<std::uint64_t>(20 + other), segment_memory(0)[2]);
    GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_SEG, "segment 1", gaspi_write(0, 0, other, 1, 0, 8, 0, GASPI_BLOCK));
  });
}

TEST(GaspiSegments, SetUpContinuesAfterATimeout) {
  Latecomer latecomer(2);
  expect_gaspi({.ranks = 3}, [&](int rank) {
    latecomer.make(rank == 1, [](gaspi_timeout_t limit) {
      return gaspi_segment_create(0, 4096, GASPI_GROUP_ALL, limit, GASPI_MEM_INITIALIZED);
    });
    GASPI_OK(gaspi_segment_alloc(1, 64, GASPI_MEM_INITIALIZED));
    for (gaspi_rank_t other = 0; other < 3; ++other)
      GASPI_OK(repeat([&](gaspi_timeout_t limit) { return gaspi_segment_register(1, other, limit); }, 0));
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    segment_memory(0)[0] = static_cast<std::uint64_t>(rank);
    const auto next = static_cast<gaspi_rank_t>((rank + 1) % 3);
    GASPI_OK(gaspi_write_notify(0, 0, next, 1, 8, 8, 0, 1, 0, GASPI_BLOCK));
    take_notification(1, 0);
    BEELINE_CHECK_EQ(static_cast<std::uint64_t>((rank + 2) % 3), segment_memory(1)[1]);
    GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
  });
}

TEST(GaspiSegments, UseMemoryOfTheProgram) {
  for (const int nodes : {1, 2}) {
    expect_gaspi({.nodes = nodes}, [](int rank) {
      std::vector<std::uint64_t> used(5000, static_cast<std::uint64_t>(rank)), bound(100, 40);
      const auto other = static_cast<gaspi_rank_t>(1 - rank);
      GASPI_OK(gaspi_segment_use(0, used.data() + 1, 4000 * 8, GASPI_GROUP_ALL, GASPI_BLOCK, GASPI_MEMORY_HOST));
      BEELINE_CHECK(segment_memory(0) == used.data() + 1);
      GASPI_OK(gaspi_segment_bind(1, bound.data(), 100 * 8, GASPI_MEMORY_HOST));
      GASPI_OK(gaspi_segment_register(1, other, GASPI_BLOCK));
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      GASPI_OK(gaspi_write_notify(0, 0, other, 1, 50 * 8, 50 * 8, 9, 1, 0, GASPI_BLOCK));
      take_notification(1, 9);
      GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
      BEELINE_CHECK_EQ(std::uint64_t{40}, bound[49]);
      for (std::size_t i = 50; i < 100; ++i) BEELINE_CHECK_EQ(std::uint64_t{other}, bound[i]);
      GASPI_OK(gaspi_read(0, 2000 * 8, other, 0, 0, 16000, 0, GASPI_BLOCK));
      GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
      for (std::size_t i = 0; i < 2000; ++i) BEELINE_CHECK_EQ(std::uint64_t{other}, used[2001 + i]);
      BEELINE_CHECK_EQ(static_cast<std::uint64_t>(rank), used[4001]);
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      GASPI_OK(gaspi_segment_delete(0));
      GASPI_OK(gaspi_segment_delete(1));
      used[0] = bound[0];  // the memory is still the program's
    });
  }
}

/// The writer gets an error or success, never a crash, and the owner's next segment of this id is not touched by it.
TEST(GaspiSegments, DeletedWhileOthersWrite) {
  for (const int nodes : {1, 2}) {
    expect_gaspi({.nodes = nodes}, [](int rank) {
      make_segment(0, 20'000);
      for (int round = 0; round < 20; ++round) {
        if (rank == 1) {
          GASPI_OK(gaspi_segment_alloc(1, 160'000, GASPI_MEM_INITIALIZED));
          GASPI_OK(gaspi_segment_register(1, 0, GASPI_BLOCK));
        }
        GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
        if (rank == 1) {
          std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
          GASPI_OK(gaspi_segment_delete(1));
        } else {
          gaspi_return_t result = GASPI_SUCCESS;
          const std::string log = logged_by([&] {
            while (result == GASPI_SUCCESS) {
              result = gaspi_write(0, 0, 1, 1, 0, 160'000, 0, GASPI_BLOCK);
              if (result == GASPI_SUCCESS) result = gaspi_wait(0, GASPI_BLOCK);
            }
          });
          BEELINE_CHECK(result == GASPI_ERR_INV_SEG || result == GASPI_ERROR);
          BEELINE_CHECK_CONTAINS(log, "segment 1");
          static_cast<void>(gaspi_queue_purge(0, GASPI_BLOCK));
        }
        GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      }
    });
  }
}

TEST(GaspiSegments, BadCallsAreRefused) {
  expect_gaspi({}, [](int) {
    make_segment(0, 8);
    std::uint64_t memory[8];
    gaspi_pointer_t pointer = &pointer;
    gaspi_size_t size = 5;
    gaspi_number_t most = 0;
    GASPI_OK(gaspi_segment_max(&most));
    const auto beyond = static_cast<gaspi_segment_id_t>(most);
    GASPI_REFUSED(GASPI_ERR_INV_SEGSIZE, "0", gaspi_segment_alloc(1, 0, GASPI_MEM_DEFAULT));
    GASPI_REFUSED(GASPI_ERR_INV_SEGSIZE, "bytes", gaspi_segment_alloc(1, ~gaspi_size_t{0} >> 1, GASPI_MEM_DEFAULT));
    GASPI_REFUSED(GASPI_ERR_INV_SEG, "segment 0", gaspi_segment_alloc(0, 64, GASPI_MEM_DEFAULT));
    GASPI_REFUSED(GASPI_ERR_INV_SEG, "segment", gaspi_segment_alloc(beyond, 64, GASPI_MEM_DEFAULT));
    GASPI_REFUSED(GASPI_ERR_INV_SEG, "segment 1", gaspi_segment_register(1, 1, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_RANK, "rank 2", gaspi_segment_register(0, 2, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_SEG, "segment 0",
                  gaspi_segment_create(0, 64, GASPI_GROUP_ALL, GASPI_BLOCK, GASPI_MEM_DEFAULT));
    GASPI_REFUSED(GASPI_ERR_INV_GROUP, "group", gaspi_segment_create(1, 64, 200, GASPI_BLOCK, GASPI_MEM_DEFAULT));
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "pointer", gaspi_segment_bind(1, nullptr, 64, GASPI_MEMORY_HOST));
    GASPI_REFUSED(GASPI_ERR_INV_SEGSIZE, "0", gaspi_segment_bind(1, memory, 0, GASPI_MEMORY_HOST));
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "pointer",
                  gaspi_segment_use(1, nullptr, 64, GASPI_GROUP_ALL, GASPI_BLOCK, GASPI_MEMORY_HOST));
    GASPI_REFUSED(GASPI_ERR_INV_SEG, "segment 1", gaspi_segment_delete(1));
    GASPI_REFUSED(GASPI_ERR_INV_SEG, "segment 1", gaspi_segment_ptr(1, &pointer));
    BEELINE_CHECK(pointer == &pointer);
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "gaspi_segment_ptr", gaspi_segment_ptr(0, nullptr));
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "gaspi_segment_num", gaspi_segment_num(nullptr));
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "gaspi_segment_list", gaspi_segment_list(1, nullptr));
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "gaspi_segment_max", gaspi_segment_max(nullptr));
    GASPI_REFUSED(GASPI_ERR_INV_SEG, "segment 1", gaspi_segment_size(1, 1, &size));
    GASPI_REFUSED(GASPI_ERR_INV_RANK, "rank 2", gaspi_segment_size(0, 2, &size));
    BEELINE_CHECK_EQ(5UL, size);
    gaspi_number_t number = 0;
    GASPI_OK(gaspi_segment_num(&number));
    BEELINE_CHECK_EQ(1U, number);
  });
}

/// Host ranks have no GPU.
TEST(GaspiSegments, OfGpusNeedOne) {
  expect_gaspi({.ranks = 1}, [](int) {
    gaspi_return_t result = GASPI_SUCCESS;
    const std::string log = logged_by([&] { result = gaspi_segment_alloc(1, 64, GASPI_MEM_GPU); });
    BEELINE_CHECK(result != GASPI_SUCCESS && result != GASPI_TIMEOUT);
    BEELINE_CHECK_CONTAINS(log, "GPU");
  });
}

}  // namespace

}  // namespace beeline_test::gaspi_segment_test
