// SPDX-License-Identifier: Apache-2.0
// The thread that watches streams that wait for a count (control/waiting_streams.hpp).
#include "control/waiting_streams.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>

#include "lone_context.hpp"

namespace beeline {

namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

class WatchedStreams : public LoneContext {
 protected:
  [[nodiscard]] WaitingStreamsClient client() {
    WaitingStreamsClient all;
    all.counters = &counter_, all.completed = &completed_;
    all.deadline_ns = context_.deadline_ns;
    all.make_stream = [this] { return make_stream(host_device(), context_, std::make_shared<GridState>()); };
    all.read = [](const std::uint64_t* counter) { return *counter; };
    all.fail = [](const std::string& reason) { ADD_FAILURE() << reason; };
    return all;
  }

  std::uint64_t counter_ = 0, completed_ = 0;
};

/// The watcher gives up its lock while it ends the team. If the object closes then, nothing wakes the watcher later.
TEST_F(WatchedStreams, EndWhileTheirWatcherEndsTheTeam) {
  std::promise<void> has_begun, may_end;
  WaitingStreamsClient of_failed_world = client();
  of_failed_world.has_failed = [] { return true; };
  of_failed_world.end_team = [&] {
    has_begun.set_value();
    may_end.get_future().wait();
  };
  auto streams = std::make_unique<WaitingStreams>(of_failed_world);
  has_begun.get_future().wait();
  std::future<void> ended = std::async(std::launch::async, [&streams] { streams.reset(); });
  EXPECT_EQ(std::future_status::timeout, ended.wait_for(200ms)) << "the watcher has not ended";
  may_end.set_value();
  if (ended.wait_for(10s) == std::future_status::ready) return;
  std::fputs("the watcher of streams that wait sleeps for ever\n", stderr);
  std::_Exit(1);  // the test would wait for its thread for ever, too
}

}  // namespace

}  // namespace beeline
