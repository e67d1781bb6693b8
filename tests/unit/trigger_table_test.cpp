// SPDX-License-Identifier: Apache-2.0
// The table of triggered operations: which operations fire, in which order, and errors. The test acts as the engine.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/device/impl/machine.hpp"
#include "control/host_triggers.hpp"

namespace beeline {

namespace {

constexpr std::uint64_t entry_deadline_ns = 1'000'000'000;

class Table : public ::testing::Test {
 protected:
  explicit Table(std::uint32_t queues = 1, std::uint32_t entries = 8) {
    table_ = std::make_unique<HostTriggers>(
        TriggerTable::Size{16, entries, entry_deadline_ns}, queues, [this](std::uint32_t queue) { ++wakes_[queue]; },
        [this](const std::string& reason) { failures_.push_back(reason); });
  }

  /// An operation that `fired` returns by its name.
  static TriggeredCommands named(std::uint64_t name, std::uint32_t tag, std::uint64_t threshold,
                                 std::uint32_t then = no_chain) {
    TriggeredCommands what{.tag = tag, .threshold = threshold, .then = then};
    what.commands[0].verb = Verb::store, what.commands[0].local = name;
    return what;
  }
  void trigger(std::uint32_t tag, std::uint64_t count = 1) { ASSERT_EQ(nullptr, table_->trigger(tag, count)); }
  /// Completes all fired operations, and those that they trigger in turn; returns their names.
  std::vector<std::uint64_t> fired(std::uint32_t queue = 0) {
    std::vector<std::uint64_t> names;
    Command command;
    for (FiredCommand fired; table_->take(queue, command, fired);) {
      names.push_back(command.local);
      if (fired.is_last) table_->finish(fired, true);
    }
    return names;
  }
  using Names = std::vector<std::uint64_t>;

  std::array<std::atomic<int>, 2> wakes_{};  ///< how often the thread of each queue was woken
  std::unique_ptr<HostTriggers> table_;
  std::vector<std::string> failures_;
};

TEST_F(Table, FiresAtTheThreshold) {
  const ArmedOperation armed = table_->arm(named(1, 3, 2));
  trigger(3);
  EXPECT_EQ(Names{}, fired());
  EXPECT_FALSE(table_->is_over(armed));
  trigger(4, 5);
  EXPECT_EQ(Names{}, fired()) << "of another tag";
  trigger(3);
  EXPECT_FALSE(table_->is_over(armed)) << "fired, and not done";
  EXPECT_EQ(Names{1}, fired());
  EXPECT_TRUE(table_->is_over(armed));
  trigger(3);
  EXPECT_EQ(Names{}, fired()) << "once";
  EXPECT_EQ(3u, table_->count(3));
}

/// A trigger without an operation makes a null entry; an operation armed later starts at once if the count suffices.
TEST_F(Table, NullEntries) {
  trigger(5, 2);
  table_->arm(named(1, 5, 2));
  EXPECT_EQ(Names{1}, fired());
  table_->arm(named(2, 5, 3));
  EXPECT_EQ(Names{}, fired());
  trigger(5);
  EXPECT_EQ(Names{2}, fired());
  table_->arm(named(3, 5, 1));
  EXPECT_EQ(Names{3}, fired()) << "a threshold that the count has passed";
}

TEST_F(Table, RisingThresholdsFireInTheirOrder) {
  for (const std::uint64_t threshold : {3u, 1u, 2u, 1u})
    table_->arm(named(10 * threshold + table_->armed(), 0, threshold));
  trigger(0);
  EXPECT_EQ((Names{11, 13}), fired()) << "of one threshold as they were armed";
  trigger(0, 7);
  EXPECT_EQ((Names{22, 30}), fired());
}

TEST_F(Table, CompletionsTriggerOtherTags) {
  table_->arm(named(1, 0, 1, 1));
  table_->arm(named(2, 1, 1, 2));
  table_->arm(named(3, 2, 2));
  trigger(0);
  EXPECT_EQ((Names{1, 2}), fired());
  trigger(2);
  EXPECT_EQ(Names{3}, fired());
  table_->arm(named(4, 3, 1, 3));
  table_->arm(named(5, 3, 2, 3));
  trigger(3);
  EXPECT_EQ((Names{4, 5}), fired()) << "a tag that triggers itself";
  EXPECT_EQ(3u, table_->count(3));
}

/// The two commands of an operation are taken one after the other; it is complete after the second.
TEST_F(Table, OperationsOfTwoCommands) {
  TriggeredCommands two = named(1, 0, 1, 1);
  two.count = 2, two.commands[1].local = 2;
  table_->arm(two);
  table_->arm(named(3, 1, 1));
  trigger(0);
  Command command;
  FiredCommand first, second;
  ASSERT_TRUE(table_->take(0, command, first));
  EXPECT_EQ(1u, command.local);
  EXPECT_FALSE(first.is_last);
  ASSERT_TRUE(table_->take(0, command, second));
  EXPECT_TRUE(second.is_last);
  EXPECT_FALSE(table_->has_fired(0));
  EXPECT_FALSE(table_->is_idle());
  table_->finish(second, true);
  EXPECT_EQ(Names{3}, fired());
  EXPECT_TRUE(table_->is_idle());
}

/// A put and its signal are one command, so that one message carries both to another node.
TEST_F(Table, PutAndSignalAreOneCommand) {
  TriggeredCommands put = named(0x100, 0, 1);
  put.count = 2;
  put.commands[0].verb = Verb::put, put.commands[0].rows = 1, put.commands[0].row_bytes = 64;
  put.commands[1].verb = Verb::store, put.commands[1].width = 8;
  put.commands[1].remote = 0x40, put.commands[1].local = 7;
  TriggeredCommands elsewhere = put;  // the signal of another rank
  elsewhere.commands[1].peer = 1;
  table_->arm(put);
  table_->arm(elsewhere);
  trigger(0);
  Command command;
  FiredCommand fired;
  ASSERT_TRUE(table_->take(0, command, fired));
  EXPECT_TRUE(fired.is_last);
  EXPECT_EQ(Verb::put_signal, command.verb);
  EXPECT_EQ(0x40u, command.remote_stride);
  EXPECT_EQ(7u, command.local_stride);
  EXPECT_EQ(64u, command.row_bytes);
  table_->finish(fired, true);
  for (const Verb verb : {Verb::put, Verb::store}) {
    ASSERT_TRUE(table_->take(0, command, fired));
    EXPECT_EQ(verb == Verb::store, fired.is_last);
    EXPECT_EQ(verb, command.verb);
  }
  table_->finish(fired, true);
}

TEST_F(Table, WhatIsRefusedTriggersNothing) {
  table_->arm(named(1, 0, 1, 1));
  table_->arm(named(2, 1, 1));
  trigger(0);
  Command command;
  FiredCommand fired_one;
  ASSERT_TRUE(table_->take(0, command, fired_one));
  table_->finish(fired_one, false);
  EXPECT_EQ(Names{}, fired());
  EXPECT_EQ(1u, table_->armed());
}

TEST_F(Table, CancelledOperationsNeverFire) {
  const ArmedOperation first = table_->arm(named(1, 0, 1)), second = table_->arm(named(2, 0, 1));
  EXPECT_TRUE(table_->cancel(first));
  EXPECT_FALSE(table_->cancel(first)) << "twice";
  EXPECT_TRUE(table_->is_over(first));
  const ArmedOperation third = table_->arm(named(3, 0, 1));  // in the entry of the first
  EXPECT_FALSE(table_->cancel(first)) << "its entry holds another";
  trigger(0);
  EXPECT_FALSE(table_->cancel(second)) << "it has fired";
  EXPECT_EQ((Names{2, 3}), fired());
  EXPECT_TRUE(table_->is_over(third));
}

TEST_F(Table, AFullTableRefusesTheNext) {
  for (std::uint32_t i = 0; i < 8; ++i) table_->arm(named(i, i, 1));
  try {
    table_->arm(named(8, 8, 1));
    FAIL() << "armed";
  } catch (const Error& error) {
    EXPECT_EQ(Status::no_resource, error.code());
    EXPECT_NE(std::string::npos, std::string(error.what()).find("all 8 entries")) << error.what();
  }
  trigger(2);
  EXPECT_THROW(table_->arm(named(8, 8, 1)), Error) << "what has fired has its entry until it is over";
  EXPECT_EQ(Names{2}, fired());
  table_->arm(named(8, 8, 1));
  EXPECT_EQ(8u, table_->armed());
}

TEST_F(Table, RefusesTagsThatThereAreNot) {
  EXPECT_STREQ("there is no such tag", table_->trigger(16, 1));
  EXPECT_STREQ("there is no such tag", table_->trigger(~std::uint64_t{0}, 1));
  EXPECT_STREQ("it counts nothing", table_->trigger(3, 0));
}

/// An operation whose threshold is not reached by the deadline, counted from its arming or its tag's latest trigger.
TEST_F(Table, AnUnmatchedOperationIsAnErrorAtItsDeadline) {
  const std::uint64_t before = machine::clock_ns();
  table_->arm(named(1, 7, 4));
  trigger(7, 3);
  const std::uint64_t after = machine::clock_ns();
  table_->check_deadlines(before + entry_deadline_ns - 1);
  EXPECT_TRUE(failures_.empty());
  table_->check_deadlines(after + entry_deadline_ns + 1);
  ASSERT_EQ(1u, failures_.size());
  for (const char* part : {"tag 7", "count 3", "threshold 4", "store"})
    EXPECT_NE(std::string::npos, failures_[0].find(part)) << failures_[0];
  trigger(7);
  EXPECT_EQ(Names{}, fired()) << "it does not fire after that";
  table_->check_deadlines(after + 100 * entry_deadline_ns);
  EXPECT_EQ(1u, failures_.size()) << "said once";
}

TEST_F(Table, ADeadlineOfItsOwn) {
  TriggeredCommands patient = named(1, 7, 1);
  patient.deadline_ns = 5 * entry_deadline_ns;
  table_->arm(patient);
  const std::uint64_t armed = machine::clock_ns();
  table_->check_deadlines(armed + 4 * entry_deadline_ns);
  EXPECT_TRUE(failures_.empty());
  table_->check_deadlines(armed + 5 * entry_deadline_ns);
  EXPECT_EQ(1u, failures_.size());
}

TEST_F(Table, AnUnmatchedTriggerIsAnErrorAtItsDeadline) {
  table_->arm(named(1, 7, 1));
  trigger(7);
  EXPECT_EQ(Names{1}, fired());
  table_->check_deadlines(machine::clock_ns() + 10 * entry_deadline_ns);
  EXPECT_TRUE(failures_.empty()) << "all triggers have had their operation";
  trigger(7);
  table_->check_deadlines(machine::clock_ns() + entry_deadline_ns);
  ASSERT_EQ(1u, failures_.size());
  for (const char* part : {"tag 7", "count 2", "threshold 1", "1 s"})
    EXPECT_NE(std::string::npos, failures_[0].find(part)) << failures_[0];
}

struct TableOfTwoQueues : Table {
  TableOfTwoQueues() : Table(2, 5000) {}
};

/// The thread of a tag's queue fires the tag's operations, whichever thread triggers them.
TEST_F(TableOfTwoQueues, TagsBelongToQueues) {
  table_->arm(named(1, 0, 1, 1));
  table_->arm(named(2, 1, 1));
  trigger(0);
  EXPECT_EQ(1, wakes_[0]);
  EXPECT_EQ(0, wakes_[1]);
  EXPECT_EQ(Names{}, fired(1));
  EXPECT_EQ(Names{1}, fired(0));
  EXPECT_EQ(1, wakes_[1]);
  EXPECT_EQ(Names{}, fired(0)) << "a chain that leads to another queue";
  EXPECT_EQ(Names{2}, fired(1));
}

TEST_F(TableOfTwoQueues, HoldsThousands) {
  for (std::uint64_t i = 0; i < 5000; ++i) table_->arm(named(i, static_cast<std::uint32_t>(i % 16), i / 16 + 1));
  EXPECT_THROW(table_->arm(named(0, 0, 1)), Error);
  for (std::uint32_t tag = 0; tag < 16; ++tag) trigger(tag, 1000);
  EXPECT_EQ(5000u, fired(0).size() + fired(1).size());
  EXPECT_EQ(0u, table_->armed());
}

/// Several threads arm and trigger while others fire: no operation is lost, and none fires twice.
TEST_F(TableOfTwoQueues, ManyThreads) {
  constexpr std::uint64_t rounds = 2000;
  std::vector<std::thread> threads;
  std::atomic<int> busy{4};
  for (std::uint32_t tag = 0; tag < 2; ++tag) {
    threads.emplace_back([this, tag, &busy] {
      for (std::uint64_t i = 1; i <= rounds; ++i) table_->arm(named(i, tag, i));
      --busy;
    });
    threads.emplace_back([this, tag, &busy] {
      for (std::uint64_t i = 1; i <= rounds; ++i) static_cast<void>(table_->trigger(tag, 1));
      --busy;
    });
  }
  Names done[2];
  for (std::uint32_t queue = 0; queue < 2; ++queue)
    threads.emplace_back([this, queue, &busy, &done] {
      while (busy > 0 || table_->has_fired(queue))
        for (const std::uint64_t name : fired(queue)) done[queue].push_back(name);
    });
  for (std::thread& thread : threads) thread.join();
  for (const Names& names : done) {
    ASSERT_EQ(rounds, names.size());
    for (std::uint64_t i = 0; i < rounds; ++i) ASSERT_EQ(i + 1, names[i]);
  }
}

}  // namespace

}  // namespace beeline
