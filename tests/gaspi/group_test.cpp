// SPDX-License-Identifier: Apache-2.0
// Groups of ranks, and the collective calls on them.
#include <GASPI.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/gaspi/gaspi_ranks.hpp"

namespace beeline_test::gaspi_group_test {

namespace {

using namespace std::chrono_literals;

gaspi_group_t make_group(const std::vector<gaspi_rank_t>& members) {
  gaspi_group_t group = 0;
  GASPI_OK(gaspi_group_create(&group));
  for (const gaspi_rank_t member : members) GASPI_OK(gaspi_group_add(group, member));
  GASPI_OK(gaspi_group_commit(group, GASPI_BLOCK));
  return group;
}

TEST(GaspiGroups, AreMadeAmongTheirMembers) {
  for (const int nodes : {1, 2}) {
    expect_gaspi({.ranks = 4, .nodes = nodes}, [](int rank) {
      if (rank == 2) return;  // does not call anything
      const gaspi_group_t group = make_group({3, 0, 1});
      gaspi_number_t size = 0, groups = 0;
      gaspi_rank_t ranks[3] = {};
      GASPI_OK(gaspi_group_size(group, &size));
      BEELINE_CHECK_EQ(3U, size);
      GASPI_OK(gaspi_group_ranks(group, ranks));
      BEELINE_CHECK(ranks[0] == 0 && ranks[1] == 1 && ranks[2] == 3);
      GASPI_OK(gaspi_group_num(&groups));
      BEELINE_CHECK_EQ(2U, groups);
      int sum = 0;
      for (int round = 1; round <= 20; ++round) {
        const int mine = rank * round;
        GASPI_OK(gaspi_allreduce(&mine, &sum, 1, GASPI_OP_SUM, GASPI_TYPE_INT, group, GASPI_BLOCK));
        BEELINE_CHECK_EQ(4 * round, sum);
        GASPI_OK(gaspi_barrier(group, GASPI_BLOCK));
      }
      GASPI_OK(gaspi_group_delete(group));
      GASPI_REFUSED(GASPI_ERR_INV_GROUP, "group", gaspi_barrier(group, GASPI_BLOCK));
    });
  }
}

TEST(GaspiGroups, ThereAreThirtyTwoBesideTheGroupOfAll) {
  expect_gaspi({}, [](int rank) {
    gaspi_number_t most = 0;
    GASPI_OK(gaspi_group_max(&most));
    BEELINE_CHECK_EQ(33U, most);
    std::vector<gaspi_group_t> groups;
    for (int i = 0; i < 32; ++i) groups.push_back(make_group({0, 1}));
    for (const gaspi_group_t group : groups) {
      int larger = -1;
      GASPI_OK(gaspi_allreduce(&rank, &larger, 1, GASPI_OP_MAX, GASPI_TYPE_INT, group, GASPI_BLOCK));
      BEELINE_CHECK_EQ(1, larger);
    }
    gaspi_group_t one_more = 77;
    GASPI_REFUSED(GASPI_ERR_MANY_GRP, "33 groups", gaspi_group_create(&one_more));
    BEELINE_CHECK_EQ(77, static_cast<int>(one_more));
    for (const gaspi_group_t group : groups) GASPI_OK(gaspi_group_delete(group));
    GASPI_OK(gaspi_group_delete(make_group({0, 1})));
  });
}

TEST(GaspiGroups, CommitContinuesAfterATimeout) {
  Latecomer latecomer(2);
  expect_gaspi({.ranks = 3}, [&](int rank) {
    // The ids of the group differ from rank to rank.
    gaspi_group_t unused = 0, group = 0;
    for (int i = 0; i < rank; ++i) GASPI_OK(gaspi_group_create(&unused));
    GASPI_OK(gaspi_group_create(&group));
    for (gaspi_rank_t member = 0; member < 3; ++member) GASPI_OK(gaspi_group_add(group, member));
    latecomer.make(rank == 1, [&](gaspi_timeout_t limit) { return gaspi_group_commit(group, limit); });
    GASPI_OK(gaspi_barrier(group, GASPI_BLOCK));
  });
}

TEST(GaspiGroups, BadCallsAreRefused) {
  expect_gaspi({}, [](int) {
    gaspi_group_t group = 0;
    gaspi_number_t number = 0;
    gaspi_rank_t ranks[2];
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "gaspi_group_create", gaspi_group_create(nullptr));
    GASPI_OK(gaspi_group_create(&group));
    GASPI_REFUSED(GASPI_ERR_INV_RANK, "rank 2", gaspi_group_add(group, 2));
    GASPI_OK(gaspi_group_add(group, 0));
    GASPI_REFUSED(GASPI_ERR_INV_RANK, "rank 0", gaspi_group_add(group, 0));
    GASPI_REFUSED(GASPI_ERR_INV_GROUP, "group", gaspi_barrier(group, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_GROUP, "group", gaspi_group_add(GASPI_GROUP_ALL, 0));
    GASPI_REFUSED(GASPI_ERR_INV_GROUP, "group", gaspi_group_delete(GASPI_GROUP_ALL));
    GASPI_REFUSED(GASPI_ERR_INV_GROUP, "group", gaspi_group_delete(200));
    GASPI_REFUSED(GASPI_ERR_INV_GROUP, "group", gaspi_group_commit(200, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_GROUP, "group 0 is committed", gaspi_group_commit(GASPI_GROUP_ALL, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_GROUP, "group", gaspi_group_size(200, &number));
    GASPI_REFUSED(GASPI_ERR_INV_GROUP, "group", gaspi_group_ranks(200, ranks));
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "gaspi_group_size", gaspi_group_size(GASPI_GROUP_ALL, nullptr));
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "gaspi_group_ranks", gaspi_group_ranks(GASPI_GROUP_ALL, nullptr));
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "gaspi_group_num", gaspi_group_num(nullptr));
    GASPI_OK(gaspi_group_delete(group));
  });
}

TEST(GaspiBarrier, ContinuesAfterATimeout) {
  Latecomer latecomer(2);
  expect_gaspi({.ranks = 3}, [&](int rank) {
    for (int late = 0; late < 3; ++late)
      latecomer.make(
          rank == late, [](gaspi_timeout_t limit) { return gaspi_barrier(GASPI_GROUP_ALL, limit); },
          late == 1 ? GASPI_TEST : 5);
  });
}

/// No rank leaves a barrier before all have come.
TEST(GaspiBarrier, SeparatesWhatIsBeforeAndAfter) {
  for (const int nodes : {1, 2}) {
    expect_gaspi({.ranks = 4, .nodes = nodes}, [](int rank) {
      const std::uint64_t* const seen = make_segment(0, 4);
      for (std::uint64_t round = 1; round <= 30; ++round) {
        auto* const mine = segment_memory(0) + rank;
        *mine = round;
        const auto offset = static_cast<gaspi_offset_t>(rank) * 8;
        const auto id = static_cast<gaspi_notification_id_t>(offset);
        for (gaspi_rank_t other = 0; other < 4; ++other)
          if (other != rank) GASPI_OK(gaspi_write_notify(0, offset, other, 0, offset, 8, id, 1, 0, GASPI_BLOCK));
        for (gaspi_rank_t other = 0; other < 4; ++other)
          if (other != rank) take_notification(0, static_cast<gaspi_notification_id_t>(other * 8));
        GASPI_OK(gaspi_wait(0, GASPI_BLOCK));
        for (int other = 0; other < 4; ++other) BEELINE_CHECK_EQ(round, seen[other]);
        GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
      }
    });
  }
}

template <class T>
void check_reductions(gaspi_datatype_t type, int rank, int ranks) {
  constexpr gaspi_number_t count = 255;
  std::vector<T> mine(count), result(count);
  for (gaspi_number_t i = 0; i < count; ++i) mine[i] = static_cast<T>(i + 10 * static_cast<unsigned>(rank));
  const auto last = static_cast<unsigned>(ranks - 1);
  const auto check = [&](gaspi_operation_t operation, const auto& expected) {
    GASPI_OK(gaspi_allreduce(mine.data(), result.data(), count, operation, type, GASPI_GROUP_ALL, GASPI_BLOCK));
    for (unsigned i = 0; i < count; ++i) BEELINE_CHECK_EQ(static_cast<T>(expected(i)), result[i]);
  };
  check(GASPI_OP_MIN, [](unsigned i) { return i; });
  check(GASPI_OP_MAX, [&](unsigned i) { return i + 10 * last; });
  check(GASPI_OP_SUM, [&](unsigned i) { return i * (last + 1) + 5 * last * (last + 1); });
  // In place, and of a single element.
  GASPI_OK(gaspi_allreduce(mine.data(), mine.data(), 1, GASPI_OP_SUM, type, GASPI_GROUP_ALL, GASPI_BLOCK));
  BEELINE_CHECK_EQ(static_cast<T>(5 * last * (last + 1)), mine[0]);
}

TEST(GaspiAllreduce, CombinesAllTypesByAllOperations) {
  for (const int nodes : {1, 2}) {
    expect_gaspi({.ranks = 4, .nodes = nodes}, [](int rank) {
      check_reductions<int>(GASPI_TYPE_INT, rank, 4);
      check_reductions<unsigned>(GASPI_TYPE_UINT, rank, 4);
      check_reductions<long>(GASPI_TYPE_LONG, rank, 4);
      check_reductions<unsigned long>(GASPI_TYPE_ULONG, rank, 4);
      check_reductions<float>(GASPI_TYPE_FLOAT, rank, 4);
      check_reductions<double>(GASPI_TYPE_DOUBLE, rank, 4);
      const long negative = -rank;
      long least = 0;
      GASPI_OK(gaspi_allreduce(&negative, &least, 1, GASPI_OP_MIN, GASPI_TYPE_LONG, GASPI_GROUP_ALL, GASPI_BLOCK));
      BEELINE_CHECK_EQ(-3L, least);
    });
  }
}

TEST(GaspiAllreduce, ContinuesAfterATimeout) {
  Latecomer latecomer(2);
  expect_gaspi({.ranks = 3}, [&](int rank) {
    for (int late = 0; late < 3; ++late) {
      int mine = 1 + rank, sum = 0;
      latecomer.make(
          rank == late,
          [&](gaspi_timeout_t limit) {
            return gaspi_allreduce(&mine, &sum, 1, GASPI_OP_SUM, GASPI_TYPE_INT, GASPI_GROUP_ALL, limit);
          },
          late == 1 ? GASPI_TEST : 5);
      BEELINE_CHECK_EQ(6, sum);
    }
  });
}

/// Concatenates digits: commutative functions would not show the order. The state counts the calls.
gaspi_return_t append_digits(gaspi_pointer_t left, gaspi_pointer_t right, gaspi_pointer_t result,
                             gaspi_reduce_state_t state, gaspi_number_t count, gaspi_size_t element_bytes,
                             gaspi_timeout_t) {
  if (element_bytes != sizeof(long)) return GASPI_ERROR;
  for (gaspi_number_t i = 0; i < count; ++i)
    static_cast<long*>(result)[i] = 10 * static_cast<const long*>(left)[i] + static_cast<const long*>(right)[i];
  ++*static_cast<int*>(state);
  return GASPI_SUCCESS;
}

gaspi_return_t refuse(gaspi_pointer_t, gaspi_pointer_t, gaspi_pointer_t, gaspi_reduce_state_t, gaspi_number_t,
                      gaspi_size_t, gaspi_timeout_t) {
  return GASPI_ERR_INV_SIZE;
}

TEST(GaspiAllreduceUser, CombinesInTheOrderOfRanks) {
  Latecomer latecomer(3);
  expect_gaspi({.ranks = 4}, [&](int rank) {
    const std::vector<long> mine(100, 1 + rank);
    std::vector<long> result(100);
    int calls = 0;
    latecomer.make(rank == 3, [&](gaspi_timeout_t limit) {
      return gaspi_allreduce_user(mine.data(), result.data(), 100, sizeof(long), append_digits, &calls, GASPI_GROUP_ALL,
                                  limit);
    });
    BEELINE_CHECK_EQ(3, calls);
    for (const long each : result) BEELINE_CHECK_EQ(1234L, each);
    GASPI_REFUSED(GASPI_ERR_INV_SIZE, "gaspi_allreduce_user",
                  gaspi_allreduce_user(mine.data(), result.data(), 1, sizeof(long), refuse, nullptr, GASPI_GROUP_ALL,
                                       GASPI_BLOCK));
  });
}

/// A member whose call differs makes all members' calls fail, and none has a result. The next call is as any other.
TEST(GaspiAllreduce, CallsThatDifferFail) {
  for (const int nodes : {1, 3}) {
    expect_gaspi({.ranks = 3, .nodes = nodes}, [](int rank) {
      const bool differs = rank == 1;
      const double mine[2] = {1, 2};
      double sum[2] = {55, 55};
      const auto expect_refusal = [&](const std::string& reason, gaspi_number_t count, gaspi_operation_t operation,
                                      gaspi_datatype_t type) {
        GASPI_REFUSED(GASPI_ERROR, reason,
                      gaspi_allreduce(mine, sum, count, operation, type, GASPI_GROUP_ALL, GASPI_BLOCK));
        BEELINE_CHECK(sum[0] == 55 && sum[1] == 55);
      };
      const std::string other = differs ? "rank 0 asks for " : "rank 1 asks for ";
      expect_refusal(other + (differs ? "GASPI_OP_SUM of 1 elements" : "GASPI_OP_SUM of 2 elements"), differs ? 2 : 1,
                     GASPI_OP_SUM, GASPI_TYPE_DOUBLE);
      expect_refusal(other + (differs ? "GASPI_OP_SUM" : "GASPI_OP_MIN"), 2, differs ? GASPI_OP_MIN : GASPI_OP_SUM,
                     GASPI_TYPE_DOUBLE);
      expect_refusal("of GASPI_TYPE_DOUBLE", 2, GASPI_OP_SUM, differs ? GASPI_TYPE_LONG : GASPI_TYPE_DOUBLE);
      if (differs)
        expect_refusal("the program's function of 2 elements of 8 bytes", 2, GASPI_OP_SUM, GASPI_TYPE_DOUBLE);
      else
        GASPI_REFUSED(GASPI_ERROR, "this rank for the program's function",
                      gaspi_allreduce_user(mine, sum, 2, 8, append_digits, nullptr, GASPI_GROUP_ALL, GASPI_BLOCK));
      GASPI_OK(gaspi_allreduce(mine, sum, 2, GASPI_OP_SUM, GASPI_TYPE_DOUBLE, GASPI_GROUP_ALL, GASPI_BLOCK));
      BEELINE_CHECK(sum[0] == 3 && sum[1] == 6);
    });
  }
}

TEST(GaspiAllreduce, BadCallsAreRefused) {
  expect_gaspi({}, [](int) {
    int mine = 0, sum = 55;
    gaspi_number_t most = 0;
    gaspi_size_t most_bytes = 0;
    GASPI_OK(gaspi_allreduce_elem_max(&most));
    GASPI_OK(gaspi_allreduce_buf_size(&most_bytes));
    BEELINE_CHECK(most >= 255 && most_bytes >= 255 * 8);
    std::vector<long> many(most + 1);
    const auto all = GASPI_GROUP_ALL;
    const auto sum_of = GASPI_OP_SUM;
    const auto ints = GASPI_TYPE_INT;
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "buffer", gaspi_allreduce(nullptr, &sum, 1, sum_of, ints, all, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "buffer", gaspi_allreduce(&mine, nullptr, 1, sum_of, ints, all, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_NUM, "0", gaspi_allreduce(&mine, &sum, 0, sum_of, ints, all, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_NUM, std::to_string(most),
                  gaspi_allreduce(many.data(), many.data(), most + 1, sum_of, GASPI_TYPE_LONG, all, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_GROUP, "group", gaspi_allreduce(&mine, &sum, 1, sum_of, ints, 200, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_GROUP, "group", gaspi_barrier(200, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_NUM, "reduction",
                  gaspi_allreduce(&mine, &sum, 1, static_cast<gaspi_operation_t>(3), ints, all, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_NUM, "type",
                  gaspi_allreduce(&mine, &sum, 1, sum_of, static_cast<gaspi_datatype_t>(7), all, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_NULLPTR, "reduce_operation",
                  gaspi_allreduce_user(&mine, &sum, 1, 4, nullptr, nullptr, all, GASPI_BLOCK));
    GASPI_REFUSED(GASPI_ERR_INV_SIZE, "bytes",
                  gaspi_allreduce_user(&mine, &sum, 1, most_bytes + 1, refuse, nullptr, all, GASPI_BLOCK));
    BEELINE_CHECK_EQ(55, sum);
  });
}

TEST(GaspiBarrier, ASecondThreadIsRefused) {
  expect_gaspi({}, [](int rank) {
    if (rank == 1) std::this_thread::sleep_for(600ms);
    if (rank == 0) {
      std::thread first([] { GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK)); });
      std::this_thread::sleep_for(150ms);
      GASPI_REFUSED(GASPI_ERR_ACTIVE_COLL, "barrier", gaspi_barrier(GASPI_GROUP_ALL, GASPI_TEST));
      first.join();
    } else {
      GASPI_OK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
    }
  });
}

}  // namespace

}  // namespace beeline_test::gaspi_group_test
