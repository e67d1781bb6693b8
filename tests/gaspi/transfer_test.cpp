// SPDX-License-Identifier: Apache-2.0
// Writes and reads: what arrives, in which order, and what is refused.
#include <GASPI.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/gaspi/gaspi_ranks.hpp"

namespace beeline_test::gaspi_transfer_test {

namespace {

/// Ranks on one node, and on two by each transport that there is.
std::vector<GaspiRanks> everywhere(int ranks = 2) {
  std::vector<GaspiRanks> all{{.ranks = ranks}, {.ranks = ranks, .nodes = 2}};
  if (missing_transport("ucx").empty()) all.push_back({.ranks = ranks, .nodes = 2, .transports = "ucx"});
  return all;
}

unsigned char pattern(std::size_t i, int rank) {
  return static_cast<unsigned char>(7 * i + i / 251 + 31 * static_cast<std::size_t>(rank));
}

/// Two segments, the second one with a pattern of this rank.
struct Memory {
  static constexpr std::size_t bytes = (3 << 20) + 64;
  unsigned char* in = make_segment<unsigned char>(0, bytes);
  unsigned char* out = make_segment<unsigned char>(1, bytes);
  explicit Memory(int rank) {
    for (std::size_t i = 0; i < bytes; ++i) out[i] = pattern(i, rank);
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
  }
};

constexpr gaspi_size_t sizes[] = {1, 7, 8, 64, 1000, 4096, 65'537, (3 << 20) + 1};

/// Offsets need no alignment; bytes beside the range stay.
TEST(GaspiTransfers, WriteAndReadAllSizes) {
  for (const GaspiRanks& how : everywhere()) {
    expect_gaspi(how, [](int rank) {
      const Memory memory(rank);
      for (const int peer : {1 - rank, rank}) {
        for (const gaspi_size_t size : sizes) {
          std::memset(memory.in, 0xEE, Memory::bytes);
          GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
          const auto to = static_cast<gaspi_rank_t>(peer);
          GASPI_OK(gaspi_write_notify(1, 3, to, 0, 5, size, 4, 77, 1, GASPI_BLOCK));
          BEELINE_CHECK_EQ(77U, take_notification(0, 4));
          GASPI_OK(gaspi_wait(1, GASPI_BLOCK));
          for (std::size_t i = 0; i < size; ++i) BEELINE_CHECK_EQ(pattern(3 + i, peer), memory.in[5 + i]);
          BEELINE_CHECK(memory.in[4] == 0xEE && memory.in[5 + size] == 0xEE);
          GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
          GASPI_OK(gaspi_read(0, 9, to, 1, 2, size, 0, GASPI_BLOCK));
          GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
          for (std::size_t i = 0; i < size; ++i) BEELINE_CHECK_EQ(pattern(2 + i, peer), memory.in[9 + i]);
          GASPI_OK(gaspi_read_notify(0, 11, to, 1, 4, size, 8, 0, GASPI_BLOCK));
          BEELINE_CHECK_EQ(1U, take_notification(0, 8));
          for (std::size_t i = 0; i < size; ++i) BEELINE_CHECK_EQ(pattern(4 + i, peer), memory.in[11 + i]);
          GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
        }
      }
    });
  }
}

/// Lists of parts in both segments.
struct Parts {
  static constexpr gaspi_number_t count = 30;
  std::vector<gaspi_segment_id_t> out = std::vector<gaspi_segment_id_t>(count, 1);
  std::vector<gaspi_segment_id_t> in = std::vector<gaspi_segment_id_t>(count, 0);
  std::vector<gaspi_offset_t> from, to;
  std::vector<gaspi_size_t> size;
  Parts() {
    for (gaspi_number_t i = 0; i < count; ++i) {
      from.push_back(1000 * i + 3);
      to.push_back(500 * (count - i));
      size.push_back(100 + i);
    }
  }
  void check(const unsigned char* memory, int of) const {
    for (gaspi_number_t i = 0; i < count; ++i)
      for (std::size_t byte = 0; byte < size[i]; ++byte)
        BEELINE_CHECK_EQ(pattern(from[i] + byte, of), memory[to[i] + byte]);
  }
};

TEST(GaspiTransfers, Lists) {
  for (const GaspiRanks& how : everywhere()) {
    expect_gaspi(how, [](int rank) {
      const Memory memory(rank);
      const auto peer = static_cast<gaspi_rank_t>(1 - rank);
      const Parts parts;
      const gaspi_number_t count = Parts::count;
      const auto begin = [&] {
        std::memset(memory.in, 0xEE, Memory::bytes);
        GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      };
      begin();
      GASPI_OK(gaspi_write_list(count, parts.out.data(), parts.from.data(), peer, parts.in.data(), parts.to.data(),
                                parts.size.data(), 0, GASPI_BLOCK));
      GASPI_OK(gaspi_notify(0, peer, 1, 1, 0, GASPI_BLOCK));
      take_notification(0, 1);
      parts.check(memory.in, peer);
      GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
      begin();
      GASPI_OK(gaspi_write_list_notify(count, parts.out.data(), parts.from.data(), peer, parts.in.data(),
                                       parts.to.data(), parts.size.data(), 1, 2, 5, 0, GASPI_BLOCK));
      BEELINE_CHECK_EQ(5U, take_notification(1, 2));
      parts.check(memory.in, peer);
      GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
      begin();
      GASPI_OK(gaspi_read_list(count, parts.in.data(), parts.to.data(), peer, parts.out.data(), parts.from.data(),
                               parts.size.data(), 0, GASPI_BLOCK));
      GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
      parts.check(memory.in, peer);
      begin();
      GASPI_OK(gaspi_read_list_notify(count, parts.in.data(), parts.to.data(), peer, parts.out.data(),
                                      parts.from.data(), parts.size.data(), 0, 3, 0, GASPI_BLOCK));
      take_notification(0, 3);
      parts.check(memory.in, peer);
      GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    });
  }
}

/// A notification arrives after everything that was given to its queue for this rank before: large and small writes,
/// lists, and writes with a notification of their own.
TEST(GaspiOrder, ANotifyFencesTheQueue) {
  for (const GaspiRanks& how : everywhere()) {
    expect_gaspi(how, [](int rank) {
      constexpr std::size_t parts = 8, words = 1500;
      std::uint64_t* const in = make_segment(0, parts * words);
      std::uint64_t* const out = make_segment(1, parts * words);
      const auto peer = static_cast<gaspi_rank_t>(1 - rank);
      for (std::uint64_t round = 1; round <= 40; ++round) {
        std::fill(out, out + parts * words, round);
        for (std::size_t part = 0; part < parts; ++part) {
          const gaspi_offset_t offset = part * words * 8;
          const gaspi_size_t size = part % 2 == 0 ? words * 8 : 8;
          if (part == 5)
            GASPI_OK(gaspi_write_notify(1, offset, peer, 0, offset, size, 1, 1, 0, GASPI_BLOCK));
          else
            GASPI_OK(gaspi_write(1, offset, peer, 0, offset, size, 0, GASPI_BLOCK));
        }
        GASPI_OK(gaspi_notify(0, peer, 0, static_cast<gaspi_notification_t>(round), 0, GASPI_BLOCK));
        BEELINE_CHECK_EQ(static_cast<gaspi_notification_t>(round), take_notification(0, 0));
        for (std::size_t part = 0; part < parts; ++part)
          BEELINE_CHECK_EQ(round, in[part * words + (part % 2 == 0 ? words - 1 : 0)]);
        take_notification(0, 1);
        GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
        GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      }
    });
  }
}

/// The data of a write_notify are there when its notification is, also while other queues carry large writes.
TEST(GaspiOrder, AWriteNotifyPromisesItsOwnData) {
  for (const GaspiRanks& how : everywhere()) {
    expect_gaspi(how, [](int rank) {
      constexpr std::size_t large = 100'000, small = 500;
      std::uint64_t* const in = make_segment(0, large + small);
      std::uint64_t* const out = make_segment(1, large + small);
      const auto peer = static_cast<gaspi_rank_t>(1 - rank);
      for (std::uint64_t round = 1; round <= 40; ++round) {
        std::fill(out + large, out + large + small, round);
        GASPI_OK(gaspi_write(1, 0, peer, 0, 0, large * 8, 1, GASPI_BLOCK));
        GASPI_OK(gaspi_write_notify(1, large * 8, peer, 0, large * 8, small * 8, 0,
                                    static_cast<gaspi_notification_t>(round), 0, GASPI_BLOCK));
        BEELINE_CHECK_EQ(static_cast<gaspi_notification_t>(round), take_notification(0, 0));
        for (std::size_t i = 0; i < small; ++i) BEELINE_CHECK_EQ(round, in[large + i]);
        GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
        GASPI_OK(gaspi_wait(1, GASPI_BLOCK));
        GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      }
    });
  }
}

/// Every argument of a write, a notification and a read, one wrong at a time; the memory of both ranks stays.
TEST(GaspiTransfers, BadCallsAreRefused) {
  for (const int nodes : {1, 2}) {
    expect_gaspi({.nodes = nodes}, [](int rank) {
      std::uint64_t* const memory = make_segment(0, 16);
      std::fill(memory, memory + 16, 0xABCD);
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      const auto peer = static_cast<gaspi_rank_t>(1 - rank);
      constexpr gaspi_offset_t far = ~gaspi_offset_t{0};
      for (const auto transfer : {&gaspi_write, &gaspi_read}) {
        GASPI_REFUSED(GASPI_ERR_INV_SEG, "segment 9", transfer(9, 0, peer, 0, 0, 8, 0, GASPI_BLOCK));
        GASPI_REFUSED(GASPI_ERR_INV_SEG, "segment 9", transfer(0, 0, peer, 9, 0, 8, 0, GASPI_BLOCK));
        GASPI_REFUSED(GASPI_ERR_INV_RANK, "rank 2", transfer(0, 0, 2, 0, 0, 8, 0, GASPI_BLOCK));
        GASPI_REFUSED(GASPI_ERR_INV_LOC_OFF, "offset 121", transfer(0, 121, peer, 0, 0, 8, 0, GASPI_BLOCK));
        GASPI_REFUSED(GASPI_ERR_INV_LOC_OFF, "offset", transfer(0, far, peer, 0, 0, 8, 0, GASPI_BLOCK));
        GASPI_REFUSED(GASPI_ERR_INV_REM_OFF, "offset 121", transfer(0, 0, peer, 0, 121, 8, 0, GASPI_BLOCK));
        GASPI_REFUSED(GASPI_ERR_INV_REM_OFF, "offset", transfer(0, 0, peer, 0, far - 7, 8, 0, GASPI_BLOCK));
        GASPI_REFUSED(GASPI_ERR_INV_COMMSIZE, "0 bytes", transfer(0, 0, peer, 0, 0, 0, 0, GASPI_BLOCK));
        GASPI_REFUSED(GASPI_ERR_INV_QUEUE, "queue 100", transfer(0, 0, peer, 0, 0, 8, 100, GASPI_BLOCK));
      }
      GASPI_REFUSED(GASPI_ERR_INV_NOTIF_VAL, "0", gaspi_notify(0, peer, 0, 0, 0, GASPI_BLOCK));
      GASPI_REFUSED(GASPI_ERR_INV_SEG, "segment 9", gaspi_notify(9, peer, 0, 1, 0, GASPI_BLOCK));
      GASPI_REFUSED(GASPI_ERR_INV_RANK, "rank 2", gaspi_notify(0, 2, 0, 1, 0, GASPI_BLOCK));
      GASPI_REFUSED(GASPI_ERR_INV_NOTIF_VAL, "0", gaspi_write_notify(0, 0, peer, 0, 0, 8, 0, 0, 0, GASPI_BLOCK));
      GASPI_REFUSED(GASPI_ERR_INV_REM_OFF, "offset 121",
                    gaspi_write_notify(0, 0, peer, 0, 121, 8, 0, 1, 0, GASPI_BLOCK));
      gaspi_notification_id_t found = 0;
      gaspi_notification_t value = 0;
      GASPI_REFUSED(GASPI_ERR_NULLPTR, "gaspi_notify_waitsome", gaspi_notify_waitsome(0, 0, 1, nullptr, GASPI_BLOCK));
      GASPI_REFUSED(GASPI_ERR_INV_SEG, "segment 9", gaspi_notify_waitsome(9, 0, 1, &found, GASPI_BLOCK));
      GASPI_REFUSED(GASPI_ERR_INV_NOTIF_ID, "65536", gaspi_notify_waitsome(0, 65'535, 2, &found, GASPI_BLOCK));
      GASPI_REFUSED(GASPI_ERR_NULLPTR, "gaspi_notify_reset", gaspi_notify_reset(0, 0, nullptr));
      GASPI_REFUSED(GASPI_ERR_INV_SEG, "segment 9", gaspi_notify_reset(9, 0, &value));
      GASPI_REFUSED(GASPI_ERR_INV_QUEUE, "queue 100", gaspi_wait(100, GASPI_BLOCK));
      GASPI_REFUSED(GASPI_ERR_INV_QUEUE, "queue 100", gaspi_queue_purge(100, GASPI_BLOCK));
      GASPI_REFUSED(GASPI_ERR_NULLPTR, "gaspi_queue_size", gaspi_queue_size(0, nullptr));
      GASPI_REFUSED(GASPI_ERR_NULLPTR, "gaspi_queue_create", gaspi_queue_create(nullptr, GASPI_BLOCK));
      GASPI_EXPECT(GASPI_TIMEOUT, gaspi_notify_waitsome(0, 0, 65'536, &found, GASPI_TEST));
      GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      BEELINE_CHECK(std::all_of(memory, memory + 16, [](std::uint64_t word) { return word == 0xABCD; }));
    });
  }
}

TEST(GaspiTransfers, BadListsAreRefused) {
  expect_gaspi({}, [](int rank) {
    std::uint64_t* const memory = make_segment(0, 600);
    std::fill(memory + 300, memory + 600, 7);
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    const auto peer = static_cast<gaspi_rank_t>(1 - rank);
    gaspi_number_t most = 0;
    GASPI_OK(gaspi_rw_list_elem_max(&most));
    BEELINE_CHECK(most >= 255);
    std::vector<gaspi_segment_id_t> segments(most + 1);
    std::vector<gaspi_offset_t> from(most + 1, 2400), to(most + 1);
    std::vector<gaspi_size_t> size(most + 1, 8);
    const auto write = [&](gaspi_number_t count) {
      return gaspi_write_list(count, segments.data(), from.data(), peer, segments.data(), to.data(), size.data(), 0,
                              GASPI_BLOCK);
    };
    GASPI_REFUSED(GASPI_ERR_INV_NUM, std::to_string(most), write(most + 1));
    GASPI_REFUSED(GASPI_ERR_INV_NUM, "0", write(0));
    // The last element is wrong: none is posted.
    to[9] = 4800;
    GASPI_REFUSED(GASPI_ERR_INV_REM_OFF, "offset 4800", write(10));
    to[9] = 0;
    from[9] = 4793;
    GASPI_REFUSED(GASPI_ERR_INV_LOC_OFF, "offset 4793", write(10));
    from[9] = 0;
    segments[9] = 9;
    GASPI_REFUSED(GASPI_ERR_INV_SEG, "segment 9", write(10));
    segments[9] = 0;
    size[9] = 0;
    GASPI_REFUSED(GASPI_ERR_INV_COMMSIZE, "0 bytes", write(10));
    size[9] = 8;
    GASPI_REFUSED(
        GASPI_ERR_NULLPTR, "gaspi_read_list",
        gaspi_read_list(2, nullptr, from.data(), peer, segments.data(), to.data(), size.data(), 0, GASPI_BLOCK));
    GASPI_REFUSED(
        GASPI_ERR_NULLPTR, "gaspi_write_list",
        gaspi_write_list(2, segments.data(), from.data(), peer, segments.data(), to.data(), nullptr, 0, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_NOTIF_VAL, "0",
                  gaspi_write_list_notify(2, segments.data(), from.data(), peer, segments.data(), to.data(),
                                          size.data(), 0, 0, 0, 0, GASPI_BLOCK));
    GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    BEELINE_CHECK_EQ(std::uint64_t{0}, memory[0]);
    GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
  });
}

}  // namespace

}  // namespace beeline_test::gaspi_transfer_test
