// SPDX-License-Identifier: Apache-2.0
#include "runtime/residency.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

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
