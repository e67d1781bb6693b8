// SPDX-License-Identifier: Apache-2.0
// Streams of the host device without a world: order, failures, events, waits.
#include "beeline/transport/stream.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/core/layout.hpp"
#include "lone_context.hpp"

namespace beeline {

namespace {

class HostStreams : public LoneContext {
 protected:
  [[nodiscard]] std::unique_ptr<Stream> make() {
    return make_stream(host_device(), context_, std::make_shared<GridState>());
  }
  static void drain(Stream& stream) {
    while (!stream.drained()) std::this_thread::yield();
  }
};

TEST_F(HostStreams, WorkRunsInOrder) {
  const auto stream = make();
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) stream->enqueue([&order, i] { order.push_back(i); });
  drain(*stream);
  EXPECT_TRUE(stream->idle());
  ASSERT_EQ(100u, order.size());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(i, order[static_cast<std::size_t>(i)]);
}

/// The stream's thread finds work whether it is posted while the thread still polls or when it sleeps.
TEST_F(HostStreams, WorkIsFoundWheneverItComes) {
  const auto stream = make();
  std::atomic<int> ran{0};
  for (int round = 0; round < 300; ++round) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(round % 30 * (round % 3));
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
    stream->enqueue([&ran] { ++ran; });
    EXPECT_TRUE(stream->sleep_until_drained(10'000'000'000));
    ASSERT_EQ(round + 1, ran.load());
  }
}

TEST_F(HostStreams, CopiesAndFills) {
  const auto stream = make();
  std::vector<unsigned char> first(1000), second(1000);
  stream->fill(first.data(), 9, first.size());
  stream->copy(second.data() + 1, first.data(), 998);
  stream->copy(second.data(), first.data(), 0);
  drain(*stream);
  EXPECT_EQ(0, second.front());
  EXPECT_EQ(9, second[1]);
  EXPECT_EQ(9, second[998]);
  EXPECT_EQ(0, second.back());
}

TEST_F(HostStreams, AFailureSkipsWhatFollowsAndIsReportedOnce) {
  const auto stream = make();
  const auto event = stream->make_event();
  std::atomic<int> ran{0};
  stream->enqueue([] { throw std::runtime_error("first"); });
  stream->enqueue([&] { ++ran; });
  stream->enqueue([] { throw std::runtime_error("second"); });
  stream->record(*event);
  drain(*stream);
  EXPECT_TRUE(event->done()) << "an event behind a failure must not be waited for in vain";
  try {
    static_cast<void>(stream->idle());
    ADD_FAILURE() << "no failure";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ("first", error.what());
  }
  EXPECT_EQ(0, ran.load());
  EXPECT_TRUE(stream->idle());
  stream->enqueue([&] { ++ran; });
  drain(*stream);
  EXPECT_EQ(1, ran.load());
}

TEST_F(HostStreams, AnEventRecordedTwiceIsWaitedForAsItWasRecorded) {
  const auto slow = make(), quick = make(), waiting = make();
  const auto event = slow->make_event();
  std::atomic<bool> may_go_on{false}, has_gone_on{false};
  slow->enqueue([&] {
    while (!may_go_on) std::this_thread::yield();
    has_gone_on = true;
  });
  slow->record(*event);
  bool saw = false;
  waiting->wait_event(*event);
  waiting->enqueue([&] { saw = has_gone_on; });
  quick->record(*event);
  drain(*quick);
  EXPECT_TRUE(event->done()) << "the last record counts";
  may_go_on = true;
  drain(*waiting);
  EXPECT_TRUE(saw) << "what was recorded before was waited for";
  drain(*slow);
  EXPECT_TRUE(event->done());
}

TEST_F(HostStreams, WorkHereIsDoneByWhoPutsItThere) {
  const auto stream = make();
  const auto event = stream->make_event();
  std::thread::id ran_on, other_ran_on;
  std::atomic<bool> is_over{false};
  {
    const WorkHere here(*stream);
    stream->enqueue([&] { ran_on = std::this_thread::get_id(); });
    EXPECT_EQ(std::this_thread::get_id(), ran_on) << "it has run by now";
    stream->record(*event);
    EXPECT_TRUE(event->done());
    std::thread([&] {
      stream->enqueue([&] {
        other_ran_on = std::this_thread::get_id();
        EXPECT_TRUE(is_over);
      });
    }).join();
    EXPECT_FALSE(stream->drained());
    is_over = true;
  }
  drain(*stream);
  EXPECT_NE(std::this_thread::get_id(), other_ran_on);
  EXPECT_NE(std::thread::id(), other_ran_on);
}

TEST_F(HostStreams, WorkIsNotDoneHereBehindOther) {
  const auto stream = make();
  std::atomic<bool> may_end{false};
  std::vector<int> order;
  stream->enqueue([&] {
    while (!may_end) std::this_thread::yield();
    order.push_back(1);
  });
  {
    const WorkHere here(*stream);
    stream->enqueue([&] { order.push_back(2); });
    may_end = true;
  }
  drain(*stream);
  EXPECT_EQ((std::vector{1, 2}), order);
}

TEST_F(HostStreams, WorkHereFailsAsWorkOfTheStream) {
  const auto stream = make();
  std::atomic<int> ran{0};
  {
    const WorkHere here(*stream);
    stream->enqueue([] { throw std::runtime_error("first"); });
    stream->enqueue([&] { ++ran; });
  }
  EXPECT_THROW(static_cast<void>(stream->idle()), std::runtime_error);
  EXPECT_EQ(0, ran.load());
  stream->enqueue([&] { ++ran; });
  drain(*stream);
  EXPECT_EQ(1, ran.load());
}

TEST_F(HostStreams, EventsHoldOtherStreams) {
  const auto first = make(), second = make();
  const auto event = first->make_event();
  EXPECT_TRUE(event->done());
  std::atomic<bool> release{false}, seen{false};
  first->enqueue([&] {
    while (!release) std::this_thread::yield();
  });
  first->record(*event);
  second->wait_event(*event);
  second->enqueue([&] { seen = true; });
  EXPECT_FALSE(event->done());
  EXPECT_FALSE(first->idle());
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(seen.load());
  release = true;
  drain(*second);
  EXPECT_TRUE(seen.load());
  EXPECT_TRUE(event->done());
}

TEST_F(HostStreams, EventsHandOnTheTeamsOfKernelsBeforeThem) {
  const auto first = make(), second = make();
  const std::unique_ptr<Event> event = first->make_event();
  first->launched_teams().note(team_set(3), 7);
  EXPECT_EQ(7, first->launched_teams().last_kernel());
  first->record(*event);
  second->wait_event(*event);
  EXPECT_EQ(team_set(3), second->launched_teams().teams());
  EXPECT_EQ(std::nullopt, second->launched_teams().all()) << "nobody has said what runs on it besides";
  second->launched_teams().note(team_set(40), 0);
  EXPECT_EQ(std::optional(team_set(3) | team_set(40)), second->launched_teams().all());
  second->launched_teams().forget();
  EXPECT_EQ(std::optional(TeamSet{0}), second->launched_teams().all());
  EXPECT_EQ(std::optional(team_set(3)), first->launched_teams().all());
}

TEST_F(HostStreams, ASignalHoldsAStreamAndPublishesItsData) {
  const auto writer = make(), reader = make();
  std::uint64_t signal = 0;
  std::vector<int> data(1000), copied(1000);
  reader->wait_signal(&signal, 2);
  reader->copy(copied.data(), data.data(), data.size() * sizeof(int));
  writer->enqueue([&] { data.assign(data.size(), 5); });
  writer->write_signal(&signal, 1);
  writer->write_signal(&signal, 3);  // any larger value suffices, too
  drain(*reader);
  EXPECT_EQ(5, copied.back());
}

TEST_F(HostStreams, AWaitEndsAtItsDeadlineAndIsRecorded) {
  context_.deadline_ns = 20'000'000;
  const auto stream = make();
  std::uint64_t signal = 4;
  stream->wait_signal(&signal, 6);
  drain(*stream);
  EXPECT_THROW(static_cast<void>(stream->idle()), Error);
  ASSERT_EQ(1u, claims_);
  EXPECT_EQ(static_cast<std::uint32_t>(Status::deadline), records_[0].status);
  EXPECT_EQ(6u, records_[0].expected);
  EXPECT_EQ(4u, records_[0].observed);
}

TEST_F(HostStreams, WaitsThatFailAlikeLeaveOneRecord) {
  abort_words_[0] = abort_word(0);
  const auto stream = make();
  std::uint64_t signal = 4;
  for (int i = 0; i < 5; ++i) {  // like kernels that were queued when the world ended
    stream->wait_signal(&signal, 6);
    drain(*stream);
    EXPECT_THROW(static_cast<void>(stream->idle()), Error);
  }
  EXPECT_EQ(1u, claims_);
  const auto event = stream->make_event();
  const auto other = make();
  std::atomic<bool> release{false};
  stream->enqueue([&] {
    while (!release) std::this_thread::yield();
  });
  stream->record(*event);
  other->wait_event(*event);
  drain(*other);
  release = true;
  drain(*stream);
  EXPECT_EQ(2u, claims_) << "another operation has its own record";
}

TEST_F(HostStreams, SleepsUntilTheWorkIsOver) {
  const auto stream = make();
  EXPECT_TRUE(stream->sleep_until_drained(10'000'000'000));  // there is none
  std::atomic<bool> release{false};
  stream->enqueue([&] {
    while (!release) std::this_thread::yield();
  });
  EXPECT_TRUE(stream->sleep_until_drained(1'000'000));
  EXPECT_FALSE(stream->drained());
  release = true;
  EXPECT_TRUE(stream->sleep_until_drained(10'000'000'000));
  EXPECT_TRUE(stream->drained());
}

TEST_F(HostStreams, DestructionWaitsForTheWork) {
  std::atomic<int> ran{0};
  {
    const auto stream = make();
    for (int i = 0; i < 10; ++i)
      stream->enqueue([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ++ran;
      });
  }
  EXPECT_EQ(10, ran.load());
}

TEST_F(HostStreams, ManyThreadsEnqueue) {
  const auto stream = make();
  int sum = 0;  // only the stream's thread changes it
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) stream->enqueue([&] { ++sum; });
    });
  for (std::thread& thread : threads) thread.join();
  drain(*stream);
  EXPECT_TRUE(stream->idle());
  EXPECT_EQ(400, sum);
}

}  // namespace

}  // namespace beeline
