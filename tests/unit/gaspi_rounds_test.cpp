// SPDX-License-Identifier: Apache-2.0
// What needs no ranks: plans of rounds, pending requests, the table of segments.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <random>
#include <thread>

#include "gaspi/request.hpp"
#include "gaspi/round.hpp"
#include "gaspi/segment_table.hpp"

namespace beeline_test::gaspi_rounds_test {

namespace {

using namespace beeline::gaspi;

/// Plans a round of ranks with these requests, which travel as bytes.
Plan plan_of(const std::vector<std::vector<Request>>& requests, std::vector<bool> healthy = {},
             const TeamMembers& teams = {}) {
  std::vector<std::vector<Item>> items;
  for (std::size_t rank = 0; rank < requests.size(); ++rank) {
    std::vector<Item> mine;
    for (const Request& request : requests[rank]) mine.push_back(item_of(request, static_cast<int>(rank)));
    items.push_back(decode(encode(mine)));
  }
  healthy.resize(requests.size(), true);
  return plan_round(items, healthy, teams);
}

Request allocate(std::uint32_t id, std::uint64_t bytes) {
  return {.action = Action::allocate, .id = id, .bytes = bytes, .kind = Memory::host};
}
Request create(std::uint32_t id, std::uint64_t bytes, std::vector<int> ranks) {
  return {.action = Action::create, .id = id, .bytes = bytes, .kind = Memory::host, .ranks = std::move(ranks)};
}
Request commit(std::uint32_t group, std::vector<int> ranks) {
  return {.action = Action::commit, .id = group, .ranks = std::move(ranks)};
}

TEST(GaspiPlans, SegmentsOfDifferentRanksAreMadeTogether) {
  const Plan plan = plan_of({{allocate(3, 10), allocate(4, 20)}, {}, {allocate(3, 30)}});
  ASSERT_EQ(2u, plan.made.size());
  ASSERT_EQ(2u, plan.made[0].size());
  EXPECT_EQ(0, plan.made[0][0].of.rank);
  EXPECT_EQ(10u, plan.made[0][0].bytes);
  EXPECT_EQ(2, plan.made[0][1].of.rank);
  EXPECT_EQ(30u, plan.made[0][1].bytes);
  ASSERT_EQ(1u, plan.made[1].size());
  EXPECT_EQ(4u, plan.made[1][0].id);
  EXPECT_EQ(1u, plan.made[1][0].of.index);
  EXPECT_FALSE(plan.leaves);
}

TEST(GaspiPlans, ASegmentOfAGroupWaitsForAllMembers) {
  EXPECT_TRUE(plan_of({{create(1, 8, {0, 1, 2})}, {create(1, 8, {0, 1, 2})}, {}}).is_empty());
  // Another segment, and another group, are other calls.
  EXPECT_TRUE(plan_of({{create(1, 8, {0, 1})}, {create(2, 8, {0, 1})}}).is_empty());
  EXPECT_TRUE(plan_of({{create(1, 8, {0, 1})}, {create(1, 8, {0, 1, 2})}, {}}).is_empty());
  const Plan plan = plan_of({{create(1, 8, {0, 2})}, {}, {create(1, 80, {0, 2})}});
  ASSERT_EQ(1u, plan.made.size());
  ASSERT_EQ(2u, plan.made[0].size());
  EXPECT_EQ(80u, plan.made[0][1].bytes);
  EXPECT_EQ((std::vector{0, 2}), plan.made[0][1].announced);
}

TEST(GaspiPlans, MemoryOfTheProgramKeepsItsAlignment) {
  alignas(16) std::byte memory[64];
  Request bound = allocate(7, 32);
  bound.existing = memory + 5;
  const Plan plan = plan_of({{bound}, {}});
  EXPECT_TRUE(plan.made.empty());
  ASSERT_EQ(1u, plan.existing.size());
  EXPECT_EQ(5u, plan.existing[0].remainder);
}

TEST(GaspiPlans, CommitsOfTheSameRanksMatchInTheirOrder) {
  const Plan plan = plan_of({{commit(1, {0, 1}), commit(2, {0, 1})}, {commit(9, {0, 1})}});
  ASSERT_EQ(1u, plan.teams.size());
  ASSERT_EQ(1u, plan.teams[0].size());
  EXPECT_EQ(0u, plan.teams[0][0].of[0].index);
}

TEST(GaspiPlans, NoRankIsInTwoTeamsThatAreMadeTogether) {
  const std::vector<Request> first{commit(1, {0, 1}), commit(2, {0, 2})}, second{commit(1, {0, 1}), commit(2, {1, 3})},
      third{commit(1, {0, 2})}, fourth{commit(1, {1, 3})};
  const Plan plan = plan_of({first, second, third, fourth});
  ASSERT_EQ(2u, plan.teams.size());
  std::size_t teams = 0;
  for (const std::vector<Plan::Team>& together : plan.teams) {
    std::vector<int> ranks;
    for (const Plan::Team& team : together) ranks.insert(ranks.end(), team.ranks.begin(), team.ranks.end());
    std::sort(ranks.begin(), ranks.end());
    EXPECT_EQ(ranks.end(), std::adjacent_find(ranks.begin(), ranks.end()));
    teams += together.size();
  }
  EXPECT_EQ(3u, teams);
}

TEST(GaspiPlans, AKillComesAlone) {
  const Plan plan = plan_of({{allocate(1, 8), {.action = Action::kill, .id = 2}}, {}, {}});
  ASSERT_EQ(1u, plan.kills.size());
  EXPECT_EQ(1u, plan.kills[0].index);
  EXPECT_EQ((std::vector{2}), plan.killed);
  EXPECT_TRUE(plan.made.empty());
}

TEST(GaspiPlans, ATeamEndsWhenAllHealthyMembersSaySo) {
  const TeamMembers teams{{5, {0, 1, 2}}};
  const Request dissolve{.action = Action::dissolve, .serial = 5};
  EXPECT_TRUE(plan_of({{dissolve}, {}, {dissolve}}, {}, teams).ends.empty());
  const Plan plan = plan_of({{dissolve}, {}, {dissolve}}, {true, false, true}, teams);
  ASSERT_EQ(1u, plan.ends.size());
  EXPECT_EQ(5u, plan.ends[0].serial);
  EXPECT_EQ(2u, plan.ends[0].of.size());
  // A team that a failure has removed is no reason to wait.
  EXPECT_EQ(1u, plan_of({{dissolve}, {}, {}}, {}, {}).ends.size());
}

TEST(GaspiPlans, TheWorldEndsWhenAllHealthyRanksLeave) {
  const Request leave{.action = Action::leave};
  EXPECT_FALSE(plan_of({{leave}, {}}).leaves);
  EXPECT_TRUE(plan_of({{leave}, {leave}}).leaves);
  EXPECT_TRUE(plan_of({{leave}, {}}, {true, false}).leaves);
}

TEST(GaspiPlans, BytesThatNoRankSendsAreRefused) {
  const std::vector<std::byte> good = encode({item_of(create(1, 8, {0, 1, 5}), 0), item_of(allocate(2, 9), 0)});
  EXPECT_EQ(2u, decode(good).size());
  for (std::size_t cut = 1; cut < 38; ++cut)
    EXPECT_THROW(static_cast<void>(decode(std::span(good).first(cut))), Failure) << cut;
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> bytes(random() % 100);
    for (std::byte& each : bytes) each = static_cast<std::byte>(random());
    try {
      static_cast<void>(decode(bytes));
    } catch (const Failure&) {
    }
  }
}

TEST(GaspiRequests, TheSameCallContinues) {
  RequestBook book;
  const auto [number, is_new] = book.find_or_add(commit(1, {0, 1}));
  EXPECT_TRUE(is_new);
  EXPECT_FALSE(book.await(number, 1000));
  EXPECT_EQ(std::pair(number, false), book.find_or_add(commit(1, {0, 1})));
  EXPECT_THROW(static_cast<void>(book.find_or_add(commit(1, {0, 2}))), Failure);
  EXPECT_EQ(1u, book.pending().size());
  book.finish(number, 0, {});
  EXPECT_TRUE(book.pending().empty());
  EXPECT_TRUE(book.contains(Action::commit, 1)) << "no call has taken the result";
  book.release(number, false);
  EXPECT_TRUE(book.contains(Action::commit, 1));
  EXPECT_TRUE(book.await(number, 0));
  book.release(number, false);
  EXPECT_FALSE(book.contains(Action::commit, 1));
}

TEST(GaspiRequests, TheWaitForCallsEnds) {
  RequestBook book;
  const auto [number, is_new] = book.find_or_add(allocate(1, 8));
  book.close("the end");
  EXPECT_TRUE(is_new);
  EXPECT_FALSE(book.await_calls(1'000'000)) << "a call has not returned";
  book.release(number, true);
  EXPECT_TRUE(book.await_calls(0));
}

TEST(GaspiRequests, AFailureReachesTheCallAndALaterOne) {
  RequestBook book;
  const auto number = book.find_or_add(allocate(1, 8)).first;
  EXPECT_EQ(number, book.find_or_add(allocate(1, 8)).first) << "another thread makes the same call";
  EXPECT_THROW(static_cast<void>(book.find_or_add({.action = Action::remove, .id = 1})), Failure);
  std::thread caller([&] { EXPECT_THROW(static_cast<void>(book.await(number, 10'000'000'000)), Failure); });
  book.finish(number, -1, "no memory");
  caller.join();
  book.release(number, true);
  EXPECT_THROW(static_cast<void>(book.await(number, 0)), Failure);
  book.release(number, true);
  EXPECT_FALSE(book.contains(Action::allocate, 1));
  book.close("the rank counts as failed");
  EXPECT_THROW(static_cast<void>(book.find_or_add(allocate(2, 8))), Failure);
}

bool is_in_use(const SegmentTable& table, std::uint32_t id) {
  return !SegmentTable::EarlierReaders(table, id).have_ended();
}

TEST(GaspiSegmentTable, HasNoPartsOutsideItsRange) {
  SegmentTable table(2);
  EXPECT_EQ(Memory::none, table.part(segment_ids, 0).kind);
  EXPECT_EQ(Memory::none, table.part(0, 2).kind);
  EXPECT_EQ(Memory::none, table.part(0, -1).kind);
  EXPECT_EQ(Memory::none, table.part(3, 1).kind);
  Part part;
  part.kind = Memory::host, part.bytes = 17, part.is_for_me = true;
  table.set(3, 1, part);
  EXPECT_EQ(17u, table.part(3, 1).bytes);
  EXPECT_EQ(Memory::none, table.part(3, 0).kind);
  {
    const SegmentTable::Use use(3);
    EXPECT_TRUE(is_in_use(table, 3));
    EXPECT_FALSE(is_in_use(table, 4));
    const SegmentTable::SharedUse shared(table, 4);
    EXPECT_TRUE(is_in_use(table, 4));
  }
  EXPECT_FALSE(is_in_use(table, 4));
  EXPECT_FALSE(is_in_use(table, 3));
  table.set(3, 1, {});
  EXPECT_EQ(Memory::none, table.part(3, 1).kind);
}

/// A removal waits for the readers that were there before it, not for those that come meanwhile.
TEST(GaspiSegmentTable, LaterReadersDoNotHoldUpARemoval) {
  const SegmentTable table(1);
  std::atomic<int> stage{0};
  const auto reach = [&](int next) {
    stage = next;
    stage.notify_all();
  };
  std::thread other([&] {
    std::optional<SegmentTable::Use> use(std::in_place, 3);
    reach(1);
    stage.wait(1);
    use.reset();
    reach(3);
    stage.wait(3);
    use.emplace(3);
    reach(5);
    stage.wait(5);
  });
  std::optional<SegmentTable::Use> mine(std::in_place, 3);
  stage.wait(0);
  {
    SegmentTable::EarlierReaders earlier(table, 3);
    EXPECT_FALSE(earlier.have_ended());
    EXPECT_FALSE(table.await_removal(3, 100'000)) << "a thread that waits lets the removal pass";
    EXPECT_TRUE(table.await_removal(4, 100'000));
    reach(2);
    stage.wait(2);
    EXPECT_FALSE(earlier.have_ended()) << "this thread still reads";
    reach(4);
    stage.wait(4);
    mine.reset();
    EXPECT_TRUE(earlier.have_ended()) << "the other thread reads again, but began later";
    EXPECT_TRUE(is_in_use(table, 3));
  }
  EXPECT_TRUE(table.await_removal(3, 100'000));
  reach(6);
  other.join();
}

TEST(GaspiSegmentTable, KeepsEachMemberOfAPart) {
  SegmentTable table(1);
  std::uint64_t memory[2]{};
  Part part;
  part.data = reinterpret_cast<std::byte*>(memory), part.address = part.data + 1, part.flags = &memory[1];
  part.registered = reinterpret_cast<beeline_registered*>(part.data + 2);
  part.registered_offset = 3, part.bytes = ~std::uint64_t{0}, part.kind = Memory::device;
  const auto expect_kept = [&] {
    table.set(7, 0, part);
    const Part kept = table.part(7, 0);
    EXPECT_EQ(part.data, kept.data);
    EXPECT_EQ(part.address, kept.address);
    EXPECT_EQ(part.flags, kept.flags);
    EXPECT_EQ(part.registered, kept.registered);
    EXPECT_EQ(part.registered_offset, kept.registered_offset);
    EXPECT_EQ(part.bytes, kept.bytes);
    EXPECT_EQ(part.kind, kept.kind);
    EXPECT_EQ(part.is_for_me, kept.is_for_me);
    EXPECT_EQ(part.has_flags_on_device, kept.has_flags_on_device);
    EXPECT_EQ(part.is_direct, kept.is_direct);
  };
  expect_kept();
  for (bool Part::*each : {&Part::is_for_me, &Part::has_flags_on_device, &Part::is_direct}) {
    part.*each = true;
    expect_kept();
    part.*each = false;
  }
}

/// A part's words always belong together, and a part that has ended is not in use once its readers are gone.
TEST(GaspiSegmentTable, ReadersSeeWholeParts) {
  SegmentTable table(1);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> ended{0};  // parts with fewer bytes have ended, and had no readers
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader)
    readers.emplace_back([&] {
      while (!stop) {
        const SegmentTable::Use use(9);
        const Part part = table.part(9, 0);
        if (part.kind == Memory::none) continue;
        ASSERT_EQ(part.bytes, reinterpret_cast<std::uintptr_t>(part.data));
        ASSERT_EQ(part.bytes, part.registered_offset);
        ASSERT_GE(part.bytes, ended.load());
      }
    });
  for (std::uint64_t round = 1; round < 300; ++round) {
    Part part;
    part.kind = Memory::host, part.bytes = part.registered_offset = round;
    part.data = reinterpret_cast<std::byte*>(round);
    table.set(9, 0, part);
    if (round % 16 == 0) std::this_thread::yield();
    table.set(9, 0, {});
    SegmentTable::EarlierReaders earlier(table, 9);
    while (!earlier.have_ended()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    ended = round + 1;
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
}

}  // namespace

}  // namespace beeline_test::gaspi_rounds_test
