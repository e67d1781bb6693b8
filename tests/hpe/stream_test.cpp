// SPDX-License-Identifier: Apache-2.0
#include "beeline/hpe/stream.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/hpe/copy.hpp"
#include "beeline/hpe/memory.hpp"
#include "beeline/hpe/object.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test {

namespace {

namespace hpe = beeline::hpe;
using namespace hpe;
using namespace std::chrono_literals;
using beeline::Status;

TEST(Streams, KeepOrder) {
  Stream stream(Device::all().front());
  std::vector<int> seen;
  for (int i = 0; i < 100; ++i) stream.enqueue([&seen, i] { seen.push_back(i); });
  stream.synchronize();
  EXPECT_TRUE(stream.is_done());
  ASSERT_EQ(seen.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST(Streams, Fill) {
  const Device device = Device::all().front();
  const DeviceMemory memory(device, 1000);
  Stream stream(device);
  stream.fill(memory.data(), 7, 1000);
  std::vector<unsigned char> there(1000);
  hpe::copy(there.data(), memory.data(), 1000, stream);
  stream.synchronize();
  EXPECT_EQ(there, std::vector<unsigned char>(1000, 7));
  check_error(Status::invalid_argument, {"a fill", "goes 1 bytes beyond"},
              [&] { stream.fill(memory.data(), 0, 1001); });
}

TEST(Streams, WaitForOtherDevices) {
  const std::vector<Device> devices = Device::all(2);
  Stream first(devices.front()), second(devices.back());
  std::atomic<bool> may_end{false};
  std::atomic<int> step{0};
  first.enqueue([&] {
    while (!may_end) std::this_thread::sleep_for(100us);
    step = 1;
  });
  second.wait_for(first);
  int seen = -1;
  // A GPU's streams share the thread that runs such work, so that the copy and not this work is held there.
  if (!devices.front().is_gpu()) second.enqueue([&] { seen = step; });
  EXPECT_FALSE(second.is_done());
  may_end = true;
  second.synchronize();
  EXPECT_TRUE(first.is_done());
  if (!devices.front().is_gpu()) EXPECT_EQ(seen, 1);
}

/// Streams of all devices wait for each other in a ring, again and again: each adds to a number that is no atomic.
TEST(Streams, WaitInRings) {
  std::vector<Device> devices = Device::all(2);
  devices.push_back(Device::host(2));
  std::vector<std::unique_ptr<Stream>> streams;
  for (const Device device : devices) streams.push_back(std::make_unique<Stream>(device));
  constexpr int rounds = 200;
  unsigned sum = 0, expected = 0;
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (expected > 0) streams[i]->wait_for(*streams[(i + streams.size() - 1) % streams.size()]);
      streams[i]->enqueue([&sum, add = ++expected] { sum = sum * 3 + add; });
    }
  for (const auto& stream : streams) stream->synchronize();
  unsigned in_order = 0;
  for (unsigned add = 1; add <= expected; ++add) in_order = in_order * 3 + add;
  EXPECT_EQ(sum, in_order);
}

/// Several threads make streams wait for the same host device's stream, whose marks must stay in order.
TEST(Streams, ManyThreadsWaitForOne) {
  Stream one(Device::host()), waiting(Device::host(1));
  constexpr int threads = 4, waits = 300;
  std::atomic<int> done{0}, early{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&] {
      for (int i = 0; i < waits; ++i) {
        const auto mine = std::make_shared<std::atomic<bool>>(false);
        one.enqueue([mine, &done] { mine->store(true), ++done; });
        waiting.wait_for(one);
        waiting.enqueue([mine, &early] {
          if (!mine->load()) ++early;
        });
      }
    });
  for (std::thread& thread : all) thread.join();
  waiting.synchronize();
  EXPECT_EQ(done, threads * waits);
  EXPECT_EQ(early, 0);
}

/// A stream that skips its work after a failure still ends the waits for it.
TEST(Streams, WaitsForFailedWorkEnd) {
  Stream failing(Device::host()), waiting(Device::host(1));
  failing.enqueue([] { throw std::runtime_error("of the work"); });
  for (int i = 0; i < 3; ++i) waiting.wait_for(failing);
  bool was_run = false;
  waiting.enqueue([&] { was_run = true; });
  waiting.synchronize({.deadline = 10s});
  EXPECT_TRUE(was_run);
  EXPECT_THROW(failing.synchronize(), std::runtime_error);
}

/// A deadline of a caller does not end the stream's wait.
TEST(Streams, WaitsOutlastACallersDeadline) {
  Stream slow(Device::host()), waiting(Device::all().front());
  std::atomic<bool> may_end{false};
  slow.enqueue([&] {
    while (!may_end) std::this_thread::sleep_for(1ms);
  });
  waiting.wait_for(slow);
  bool was_run = false;
  waiting.enqueue([&] { was_run = true; });
  check_error(Status::deadline, {waiting.device().name(), "0.02 s"}, [&] { waiting.synchronize({.deadline = 20ms}); });
  EXPECT_FALSE(waiting.is_done());
  may_end = true;
  waiting.synchronize();
  EXPECT_TRUE(was_run);
}

TEST(Streams, WaitsHaveDeadlines) {
  Stream stream(Device::host());
  std::atomic<bool> ends{false};
  stream.enqueue([&] {
    while (!ends) std::this_thread::sleep_for(1ms);
  });
  const auto begun = std::chrono::steady_clock::now();
  for (const auto period : {0us, 20us, 1000us})
    check_error(Status::deadline, {"a stream of host device 0", "0.03 s"},
                [&] { stream.synchronize({.poll_period = period, .deadline = 30ms}); });
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 10s);
  ends = true;
  stream.synchronize();
}

TEST(Streams, FailuresAreThrownOnce) {
  Stream stream(Device::host());
  stream.enqueue([] { throw std::runtime_error("of the work"); });
  bool was_run = false;
  stream.enqueue([&] { was_run = true; });
  EXPECT_THROW(stream.synchronize(), std::runtime_error);
  EXPECT_FALSE(was_run);
  stream.synchronize();
}

/// Work may throw anything, and need not end: a destructor neither ends the process nor waits for ever.
TEST(Streams, EndWithWorkThatFailsOrStays) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        {
          Stream(Device::host()).enqueue([] { throw 42; });
        }
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "type int");
  EXPECT_EXIT(
      {
        ::setenv("BEELINE_STREAM_DEADLINE_S", "0.05", 1);
        ::alarm(60);
        Stream(Device::host()).enqueue([] {
          for (;;) std::this_thread::sleep_for(1ms);
        });
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "did not end within 0.05 s");
}

/// Work that goes on when its stream has ended at the deadline.
struct LeftWork {
  std::atomic<bool> may_end{false};
  std::atomic<int> ended{0};

  LeftWork() { ::setenv("BEELINE_STREAM_DEADLINE_S", "0.3", 1); }
  void operator()() {
    while (!may_end) std::this_thread::sleep_for(1ms);
    ended = 1;
  }
  /// Time for what should wait for the work, and does not.
  void end_late() {
    std::this_thread::sleep_for(50ms);
    may_end = true;
  }
};

/// Ends the process, successfully unless work of the stream has seen 0 before the work that was left had ended.
[[noreturn]] void expect_not_seen_early(Stream& stream, const std::atomic<int>& seen) {
  try {
    stream.synchronize();
  } catch (const beeline::Error&) {  // it has waited until its own deadline
  }
  std::_Exit(seen == 0 ? 1 : 0);
}

/// A stream ends at its deadline, with work left. The next stream, which may get its address, is not taken for it.
TEST(Streams, WorkThatWasLeftIsWaitedFor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        LeftWork left;
        std::atomic<int> seen{-1};
        Object<int> object(1, {.device = Device::host(), .deadline = 20s});
        {
          Stream stream(Device::host());
          const DeviceAccess access(stream, {&object.state()});
          stream.enqueue([&] { left(); });
        }
        Stream later(Device::host());
        {
          const DeviceAccess access(later, {&object.state()});
          later.enqueue([&] { seen = left.ended.load(); });
        }
        left.end_late();
        expect_not_seen_early(later, seen);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        LeftWork left;
        std::atomic<bool> may_wait{false};
        std::atomic<int> seen{-1};
        Stream waiting(Device::host());
        waiting.enqueue([&] {
          while (!may_wait) std::this_thread::sleep_for(1ms);
        });
        {
          Stream stream(Device::host());
          stream.enqueue([&] { left(); });
          waiting.wait_for(stream);
        }
        waiting.enqueue([&] { seen = left.ended.load(); });
        Stream later(Device::host());
        waiting.wait_for(later);
        later.synchronize();
        may_wait = true;
        left.end_late();
        expect_not_seen_early(waiting, seen);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Streams, EmptyWorkIsRefused) {
  Stream stream(Device::host());
  check_error(Status::invalid_argument, {"empty function"}, [&] { stream.enqueue(nullptr); });
  stream.synchronize();
}

TEST(Streams, HostDevicesHaveNoStreamsToAdopt) {
  check_error(Status::invalid_argument, {"host device 0", "adopted"},
              [] { static_cast<void>(Stream::adopt(Device::host(), nullptr)); });
}

/// Lock time grows with calls, not with bytes.
TEST(Streams, LockTimes) {
  const Device device = Device::host(40);
  constexpr std::size_t bytes = std::size_t{32} << 20;
  const DeviceMemory from(device, bytes), to(device, bytes);
  EXPECT_EQ(device.lock_times().calls, 0u);
  {
    Stream stream(device);
    for (int i = 0; i < 4; ++i) hpe::copy(to.data(), from.data(), bytes, stream);
    stream.synchronize();
    const LockTimes times = stream.lock_times();
    EXPECT_EQ(times.calls, 4u);
    EXPECT_GT(times.held_ns, 0u);
    EXPECT_LE(times.longest_ns, times.held_ns);
    EXPECT_EQ(device.lock_times().calls, 4u);
  }
  EXPECT_EQ(device.lock_times().calls, 4u);  // also after the stream's end
}

TEST(Streams, AreNotAwaitedByTheirOwnWork) {
  Stream stream(Device::all().front()), other(Device::host());
  std::string refusal;
  stream.enqueue([&] {
    try {
      stream.synchronize();
    } catch (const beeline::Error& error) {
      refusal = error.what();
    }
  });
  stream.synchronize();
  EXPECT_NE(refusal.find("waits for this stream"), std::string::npos) << refusal;
  other.enqueue([&] { stream.synchronize(); });
  other.synchronize();
}

/// A thread that waits holds no lock: another thread enqueues meanwhile.
TEST(Streams, WaitsHoldNoLock) {
  Stream stream(Device::host());
  std::atomic<bool> ends{false};
  stream.enqueue([&] {
    while (!ends) std::this_thread::sleep_for(1ms);
  });
  std::thread waiting([&] { stream.synchronize(); });
  std::this_thread::sleep_for(10ms);
  std::atomic<bool> was_run{false};
  stream.enqueue([&] { was_run = true; });
  ends = true;
  waiting.join();
  EXPECT_TRUE(was_run);
}

}  // namespace

}  // namespace beeline_test
