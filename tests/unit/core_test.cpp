// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "beeline/core/error.hpp"
#include "beeline/core/layout.hpp"
#include "beeline/core/log.hpp"
#include "beeline/core/method.hpp"
#include "beeline/core/status.hpp"

namespace beeline {

namespace {

TEST(Status, EveryCodeHasANameOfItsOwn) {
  std::set<std::string> names;
  for (std::uint32_t code = 0; code <= static_cast<std::uint32_t>(Status::internal); ++code)
    names.insert(name(static_cast<Status>(code)));
  EXPECT_EQ(static_cast<std::size_t>(Status::internal) + 1, names.size());
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_STREQ("unknown", name(static_cast<Status>(999)));
}

TEST(Status, OkAndInProgressAreNoFailures) {
  EXPECT_FALSE(failed(Status::ok));
  EXPECT_FALSE(failed(Status::in_progress));
  EXPECT_TRUE(failed(Status::timeout));
  EXPECT_TRUE(failed(Status::deadline));
}

TEST(Operation, EveryOneHasANameOfItsOwn) {
  std::set<std::string> names;
  for (std::uint32_t each = 0; each <= static_cast<std::uint32_t>(Operation::receive); ++each)
    names.insert(name(static_cast<Operation>(each)));
  EXPECT_EQ(static_cast<std::size_t>(Operation::receive) + 1, names.size());
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(Error, SaysCodeRankAndPlace) {
  const Error error(Status::deadline, "nobody came", 3);
  EXPECT_STREQ("deadline: rank 3: nobody came", error.what());
  EXPECT_EQ(Status::deadline, error.code());
  EXPECT_EQ(3, error.rank());
  EXPECT_NE(std::string::npos, std::string(error.where().file_name()).find("core_test"));
  EXPECT_STREQ("internal: oops", Error(Status::internal, "oops").what());
}

TEST(Error, RequireThrowsOnlyWhenItDoesNotHold) {
  EXPECT_NO_THROW(require(true, Status::internal, "fine"));
  EXPECT_THROW(require(false, Status::internal, "not fine"), Error);
}

TEST(Method, IdentifiersAndMethodsMatch) {
  std::set<std::string> ids;
  for (const MethodInfo& info : methods()) {
    EXPECT_EQ(info.method, Method::parse(info.method.id()));
    EXPECT_FALSE(info.summary.empty());
    ids.insert(info.method.id());
  }
  EXPECT_EQ(methods().size(), ids.size());
  EXPECT_TRUE(ids.contains("device/peer/packets"));
  EXPECT_TRUE(ids.contains("host/staged/pipelined"));
}

TEST(Method, UnknownIdentifiersAreRefusedWithTheKnownOnes) {
  for (const char* id :
       {"", "device", "device/peer", "device/peer/packets/x", "DEVICE/PEER/PACKETS", "host/peer/verbs "}) {
    try {
      static_cast<void>(Method::parse(id));
      ADD_FAILURE() << "accepted \"" << id << '"';
    } catch (const Error& error) {
      EXPECT_EQ(Status::invalid_argument, error.code());
      EXPECT_NE(std::string::npos, std::string(error.what()).find("device/peer/packets")) << error.what();
    }
  }
}

TEST(Log, LevelsIncludeTheGraverOnes) {
  set_log_level(LogLevel::info);
  EXPECT_TRUE(log_enabled(LogLevel::error));
  EXPECT_TRUE(log_enabled(LogLevel::info));
  EXPECT_FALSE(log_enabled(LogLevel::debug));
  set_log_level(LogLevel::warning);
  EXPECT_FALSE(log_enabled(LogLevel::info));
}

TEST(Layout, AbortWordsAreNeverZero) {
  EXPECT_EQ(1u, abort_word(0));
  EXPECT_EQ(64u, abort_word(63));
}

}  // namespace

}  // namespace beeline
