// SPDX-License-Identifier: Apache-2.0
#include "runtime/residency.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "beeline/control/impl/task_lease.hpp"
#include "beeline/core/error.hpp"
#include "tests/unit/lone_context.hpp"

namespace beeline {

namespace {

bool running() { return false; }
bool over() { return true; }

class Residency : public ::testing::Test {
 protected:
  /// The refusal's text, empty if the claim was granted.
  std::string claim(const int& stream, double share, const char* what, bool (*is_idle)() = running,
                    const int* turns = nullptr) {
    try {
      ledger_.claim(
          &stream, turns, share, [what] { return std::string(what); }, is_idle);
    } catch (const Error& error) {
      EXPECT_EQ(Status::no_resource, error.code());
      return error.what();
    }
    return {};
  }
  ResidencyLedger ledger_;
  int first_ = 0, second_ = 0, third_ = 0, fourth_ = 0;
  int channel_ = 0, other_channel_ = 0;
};

TEST_F(Residency, SharesThatFitAreGranted) {
  EXPECT_EQ("", claim(first_, 0.5, "a"));
  EXPECT_EQ("", claim(second_, 0.25, "b"));
  EXPECT_EQ("", claim(third_, 0.25, "c"));
}

TEST_F(Residency, WhatCannotBeResidentIsRefusedWithAllNames) {
  EXPECT_EQ("", claim(first_, 0.6, "the solver"));
  const std::string refusal = claim(second_, 0.5, "the exchange");
  for (const char* words : {"the exchange", "50 %", "the solver holds 60 %", "resident_blocks"})
    EXPECT_NE(std::string::npos, refusal.find(words)) << refusal;
  EXPECT_EQ("", claim(second_, 0.4, "a smaller exchange")) << "a refused claim must leave nothing behind";
}

TEST_F(Residency, MoreThanTheDeviceIsRefusedAlone) { EXPECT_NE("", claim(first_, 1.01, "too large")); }

TEST_F(Residency, LaunchesOfOneStreamFollowEachOther) {
  EXPECT_EQ("", claim(first_, 0.9, "a"));
  EXPECT_EQ("", claim(first_, 1.0, "b"));
  EXPECT_EQ("", claim(first_, 0.1, "c"));
  EXPECT_NE("", claim(second_, 0.1, "d")) << "b may still run";
}

TEST_F(Residency, LaunchesThatTakeTurnsCountOnce) {
  EXPECT_EQ("", claim(first_, 0.5, "a", running, &channel_));
  EXPECT_EQ("", claim(second_, 0.5, "b", running, &channel_));
  EXPECT_EQ("", claim(third_, 0.4, "c", running, &channel_));
  EXPECT_EQ("", claim(first_, 0.5, "d", running, &other_channel_));
  const std::string refusal = claim(fourth_, 0.1, "e");
  for (const char* words : {"a holds 50 %", "b holds 50 %", "c holds 40 %", "d holds 50 %"})
    EXPECT_NE(std::string::npos, refusal.find(words)) << refusal;
}

TEST_F(Residency, LaunchesOfOneStreamFollowEachOtherWhateverTheirTurns) {
  EXPECT_EQ("", claim(first_, 1.0, "a"));
  EXPECT_EQ("", claim(first_, 0.5, "b", running, &channel_));
  EXPECT_EQ("", claim(first_, 0.5, "c", running, &other_channel_));
  EXPECT_NE("", claim(second_, 0.5, "d", running, &channel_)) << "a may still run";
  ledger_.forget(&first_);
  EXPECT_EQ("", claim(second_, 1.0, "e", running, &channel_));
}

TEST_F(Residency, IdleStreamsGiveTheirShareBack) {
  EXPECT_EQ("", claim(first_, 1.0, "a", over));
  EXPECT_EQ("", claim(second_, 1.0, "b"));
  ledger_.forget(&second_);
  EXPECT_EQ("", claim(third_, 1.0, "c"));
}

constexpr int multiprocessors = 132;
constexpr unsigned engines_of_a_multiprocessor = 4;  // as many blocks of 128 threads with 128 registers each fit

class ReservedResidency : public Residency {
 protected:
  std::string keep(const int& owner, const ReservedRoom& room, const char* what) {
    try {
      ledger_.keep(&owner, room, [what] { return std::string(what); });
    } catch (const Error& error) {
      EXPECT_EQ(Status::no_resource, error.code());
      return error.what();
    }
    return {};
  }
  static ReservedRoom engine() { return room_for(1, engines_of_a_multiprocessor, multiprocessors); }
};

/// Four ranks share a GPU. Each has a device engine, queue pairs and two blocks for posted transfers, and most of the
/// GPU is left for their waiting grids.
TEST_F(ReservedResidency, EnginesOfFourRanksLeaveMostOfTheDevice) {
  constexpr int ranks = 4, engines = 4;
  const int owners[ranks * engines] = {}, streams[ranks] = {};
  for (const int& owner : owners) ASSERT_EQ("", keep(owner, engine(), "an engine"));
  constexpr unsigned resident = 8 * multiprocessors;
  const unsigned share = share_of_rank(resident, ledger_.kept(), {ranks, ranks});
  EXPECT_LT(resident / ranks * 6 / 10, share);
  for (const int& stream : streams) EXPECT_EQ("", claim(stream, static_cast<double>(share) / resident, "a kernel"));
  EXPECT_NE("", claim(first_, 4.0 / resident, "one block more for each"));
}

TEST_F(ReservedResidency, ARankGetsItsPartOfWhatIsLeft) {
  EXPECT_EQ(25u, share_of_rank(100, 0, {4, 4}));
  EXPECT_EQ(20u, share_of_rank(100, 0.2, {4, 4})) << "what the ranks of a process reserve is counted once";
  EXPECT_EQ(5u, share_of_rank(100, 0.2, {4, 1})) << "each process reserves";
  EXPECT_EQ(15u, share_of_rank(100, 0.2, {4, 2}));
  EXPECT_EQ(0u, share_of_rank(100, 0.3, {4, 1}));
}

TEST_F(ReservedResidency, RefusalsNameWhatIsReserved) {
  EXPECT_EQ("", keep(first_, {0.01, 0.25}, "rank 0's engine"));
  std::string refusal = claim(second_, 0.8, "the solver");
  for (const char* words : {"the solver waits", "80 %", "rank 0's engine holds 1 %", "25 % are left free"})
    EXPECT_NE(std::string::npos, refusal.find(words)) << refusal;
  EXPECT_EQ("", claim(second_, 0.7, "the solver"));
  refusal = keep(third_, {0.05, 0.2}, "rank 1's workers");
  for (const char* words : {"rank 1's workers needs 5 %", "the solver holds 70 %", "25 % are left free"})
    EXPECT_NE(std::string::npos, refusal.find(words)) << refusal;
  refusal = keep(third_, {0.01, 0.5}, "rank 1's workers");
  EXPECT_NE(std::string::npos, refusal.find("50 % are left free")) << refusal;
  EXPECT_EQ("", keep(third_, {0.04, 0.25}, "rank 1's workers"));
  ledger_.forget(&first_);
  ledger_.forget(&third_);
  EXPECT_EQ(0, ledger_.kept());
}

/// A device whose multiprocessors have one resource, and an adversary that places blocks on it.
class Placement {
 public:
  Placement(int units, unsigned resource) : free_(static_cast<std::size_t>(units), resource) {}

  /// Places a block, if possible on a multiprocessor on which another block, which takes `opponent`, would find room.
  /// Returns whether there is room for it.
  bool place(unsigned takes, unsigned opponent) {
    const auto has_room_for = [this](unsigned both) {
      return std::find_if(free_.begin(), free_.end(), [both](unsigned left) { return left >= both; });
    };
    auto at = has_room_for(std::max(takes, opponent));
    if (at == free_.end()) at = has_room_for(takes);
    if (at == free_.end()) return false;
    *at -= takes;
    return true;
  }

 private:
  std::vector<unsigned> free_;
};

/// Whatever waiting grids the ledger grants, and however their blocks are spread, each reserved block finds room.
TEST_F(ReservedResidency, ReservedBlocksFindRoom) {
  constexpr unsigned resource = 65536, engines = 3;
  for (const int units : {7, 20, multiprocessors})
    for (const unsigned engine_takes : {2048u, 15360u, 16384u, 21845u, 32768u})
      for (const unsigned waiting_takes : {512u, 2048u, 10000u, 24000u, 32768u, 65536u}) {
        ResidencyLedger ledger;
        Placement placed(units, resource);
        const unsigned per_unit = resource / waiting_takes;
        const int owners[engines] = {};
        const ReservedRoom room = room_for(1, resource / engine_takes, units);
        for (const int& owner : owners) ledger.keep(&owner, room, [] { return std::string("an engine"); });
        const unsigned all = per_unit * static_cast<unsigned>(units), share = share_of_rank(all, ledger.kept(), {1, 1});
        ledger.claim(
            &first_, nullptr, static_cast<double>(share) / all, [] { return std::string("a grid"); }, running);
        for (unsigned block = 0; block < share; ++block) ASSERT_TRUE(placed.place(waiting_takes, engine_takes));
        for (unsigned engine = 0; engine < engines; ++engine)
          EXPECT_TRUE(placed.place(engine_takes, 0))
              << units << " multiprocessors, engine " << engine_takes << ", waiting " << waiting_takes;
      }
}

/// The blocks of a waiting grid find room beside reserved blocks that were placed before, each where it is in the way.
TEST_F(ReservedResidency, WaitingBlocksFindRoomBesideReservedOnes) {
  constexpr unsigned resource = 65536, engines = 40;
  for (const unsigned engine_takes : {2048u, 15360u, 16384u, 32768u})
    for (const unsigned waiting_takes : {512u, 2048u, 10000u, 24000u, 32768u, 65536u}) {
      Placement placed(multiprocessors, resource);
      ResidencyLedger ledger;
      const int owners[engines] = {};
      const ReservedRoom room = room_for(1, resource / engine_takes, multiprocessors);
      for (const int& owner : owners) ledger.keep(&owner, room, [] { return std::string("an engine"); });
      for (unsigned engine = 0; engine < engines; ++engine) ASSERT_TRUE(placed.place(engine_takes, resource));
      const unsigned all = resource / waiting_takes * multiprocessors;
      const unsigned share = share_of_rank(all, ledger.kept(), {1, 1});
      for (unsigned block = 0; block < share; ++block)
        ASSERT_TRUE(placed.place(waiting_takes, 0)) << "engine " << engine_takes << ", waiting " << waiting_takes;
    }
}

/// Two workers of a GPU, each played by a thread of the test.
class LeaseOfTwo : public LoneContext {
 protected:
  LeaseOfTwo() {
    lease_.begin();
    lease_.begin();
  }
  bool end() { return lease_.end(context_, {&tickets_, 1, 1}); }
  TaskTickets tickets_{};
  detail::TaskLease lease_{};
};

TEST_F(LeaseOfTwo, EndsWhenBothRest) {
  std::atomic<bool> has_come{false};
  std::thread other([&] {
    has_come = true;
    EXPECT_TRUE(end());
  });
  EXPECT_TRUE(end());
  EXPECT_TRUE(has_come);
  other.join();
  EXPECT_EQ(0u, lease_.workers) << "the next lease begins anew";
}

TEST_F(LeaseOfTwo, GoesOnWhileATaskWaits) {
  tickets_.waiting = 1;
  EXPECT_FALSE(end());
  EXPECT_FALSE(end());
  EXPECT_EQ(2 * detail::TaskLease::running, lease_.workers);
}

TEST_F(LeaseOfTwo, EndsWithItsTeam) {
  abort_words_[0] = 1;
  EXPECT_TRUE(end());
  EXPECT_EQ(detail::TaskLease::running, lease_.workers);
  lease_.leave();
  EXPECT_EQ(0u, lease_.workers);
}

}  // namespace

}  // namespace beeline
