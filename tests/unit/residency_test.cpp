// SPDX-License-Identifier: Apache-2.0
#include "beeline/runtime/residency.hpp"

#include <gtest/gtest.h>

#include <string>

#include "beeline/core/error.hpp"

namespace beeline {

namespace {

bool running() { return false; }
bool over() { return true; }

class Residency : public ::testing::Test {
 protected:
  /// The refusal's text, empty if the claim was granted.
  std::string claim(const int& stream, double share, const char* what, bool (*is_idle)() = running) {
    try {
      ledger_.claim(
          &stream, share, [what] { return std::string(what); }, is_idle);
    } catch (const Error& error) {
      EXPECT_EQ(Status::no_resource, error.code());
      return error.what();
    }
    return {};
  }
  ResidencyLedger ledger_;
  int first_ = 0, second_ = 0, third_ = 0;
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

TEST_F(Residency, IdleStreamsGiveTheirShareBack) {
  EXPECT_EQ("", claim(first_, 1.0, "a", over));
  EXPECT_EQ("", claim(second_, 1.0, "b"));
  ledger_.forget(&second_);
  EXPECT_EQ("", claim(third_, 1.0, "c"));
}

}  // namespace

}  // namespace beeline
