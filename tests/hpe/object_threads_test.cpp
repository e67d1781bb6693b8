// SPDX-License-Identifier: Apache-2.0
// Objects that several threads and streams use at the same time.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "beeline/hpe/copy.hpp"
#include "beeline/hpe/object.hpp"
#include "tests/hpe/object_cases.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::objects_of_threads {

namespace {

using namespace beeline::hpe;
using beeline::Status;
using namespace std::chrono_literals;

class ObjectsOfThreads : public EachProtocol {};
INSTANTIATE_TEST_SUITE_P(Host, ObjectsOfThreads, host_protocols, protocol_name);

/// As errors name the object.
std::string address_of(const Object<std::uint64_t>& object) {
  return fmt::format("the object at {}", static_cast<const void*>(object.data()));
}

/// Between the acquisition and the release of one thread's launch, another thread's must not begin.
TEST_P(ObjectsOfThreads, LaunchesOfThreadsFollowEachOther) {
  constexpr std::uint64_t threads = 4, launches = 100;
  Object<std::uint64_t> object(4 * words_of_block, options());
  Stream shared(Device::host(0));
  std::vector<std::thread> launchers;
  for (std::uint64_t thread = 0; thread < threads; ++thread)
    launchers.emplace_back([&, thread] {
      Stream own(Device::host(static_cast<int>(thread % 2)));
      for (std::uint64_t launch = 0; launch < launches; ++launch) {
        run_on(launch % 3 == 0 ? shared : own, object, add_to_all(1));
        if (launch % 10 == thread) own.synchronize();
      }
    });
  for (std::uint64_t launch = 0; launch < launches; ++launch)
    EXPECT_LE(object[launch % object.size()], threads * launches);  // fetches a block between launches
  for (std::thread& launcher : launchers) launcher.join();
  for (std::size_t i = 0; i < object.size(); ++i) ASSERT_EQ(object[i], threads * launches) << i;
}

/// A read on the stream of a pending kernel leaves the kernel's writes to wait for.
TEST_P(ObjectsOfThreads, ReadsOfOtherStreamsFollowTheKernel) {
  Object<std::uint64_t> object(words_of_block, options());
  Stream first(Device::host(0)), second(Device::host(1));
  run_on(first, object, add_to_all(1));
  first.synchronize();
  run_on(first, object, [](std::uint64_t* all, std::size_t) {
    std::this_thread::sleep_for(30ms);
    all[0] = 7;
  });
  std::uint64_t early = 0, late = 0;
  beeline::hpe::copy(&early, object.data(), 8, first);
  beeline::hpe::copy(&late, object.data(), 8, second);
  second.synchronize();
  EXPECT_EQ(late, 7u);
  first.synchronize();
  EXPECT_EQ(early, 7u);
}

TEST_P(ObjectsOfThreads, AreHeldAllTogether) {
  Object<std::uint64_t> one(words_of_block, options()), other(words_of_block, options());
  one[3] = 1;
  other[3] = 2;
  Stream stream(Device::host());
  const std::uint64_t* const from = one.on(stream.device());
  std::uint64_t* const to = other.on(stream.device());
  {
    const DeviceAccess all(stream);
    stream.enqueue([from, to] { to[3] += from[3]; });
    check_error(Status::invalid_argument, {"own DeviceAccess"}, [&] { HostAccess(one, Access::read); });
  }
  EXPECT_EQ(other[3], 3u);
  EXPECT_EQ(one[3], 1u);
}

TEST_P(ObjectsOfThreads, AreHeldForOneStreamAtATime) {
  Object<std::uint64_t> object(words_of_block, options());
  Stream first(Device::host(0)), second(Device::host(1));
  {
    const DeviceAccess access(first, {&object.state()});
    const DeviceAccess once_more(first, {&object.state()});
    run_on(first, object, add_to_all(1));
    check_error(Status::invalid_argument, {"own DeviceAccess", "another stream", address_of(object)},
                [&] { run_on(second, object, add_to_all(1)); });
    check_error(Status::invalid_argument, {"own DeviceAccess", address_of(object)},
                [&] { HostAccess(object, Access::read); });
  }
  run_on(second, object, add_to_all(1));
  EXPECT_EQ(object[0], 2u);
}

/// A thread's second access to a stream's work is its own again once another thread's has ended.
TEST_P(ObjectsOfThreads, AnAccessOfAnotherThreadIsForgotten) {
  Object<std::uint64_t> object(words_of_block, options());
  Stream first(Device::host(0)), second(Device::host(1));
  const DeviceAccess access(first, {&object.state()});
  std::thread([&] { run_on(first, object, add_to_all(1)); }).join();
  check_error(Status::invalid_argument, {"own DeviceAccess", address_of(object)},
              [&] { run_on(second, object, add_to_all(1)); });
}

/// They fail with an error number, instead of a wait for the DeviceAccess, which only the waiting thread could end.
TEST_P(ObjectsOfThreads, SystemCallsWithinTheOwnDeviceAccessFailAtOnce) {
  Object<std::uint64_t> object(words_of_block, options());
  Stream stream(Device::host());
  run_on(stream, object, add_to_all(1));
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const auto began = std::chrono::steady_clock::now();
  {
    const DeviceAccess access(stream, {&object.state()});
    EXPECT_EQ(::write(ends[1], object.data(), 8), -1);
    EXPECT_EQ(errno, EFAULT);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s) << "not at the deadline";
  EXPECT_EQ(object[0], 1u) << "the access has ended";
  EXPECT_EQ(::write(ends[1], object.data(), 8), 8);
  for (const int end : ends) ::close(end);
}

/// Neither thread waits for an object that the other one holds.
TEST_P(ObjectsOfThreads, CopiesOfThreadsCross) {
  Object<std::uint64_t> one(2 * words_of_block, options()), other(2 * words_of_block, options());
  const auto copy_often = [](const Object<std::uint64_t>& to, const Object<std::uint64_t>& from, int device) {
    Stream stream(Device::host(device));
    for (int round = 0; round < 100; ++round) beeline::hpe::copy(to.data(), from.data(), to.size() * 8, stream);
    stream.synchronize();
  };
  one[3] = other[3] = 5;
  std::thread there([&] { copy_often(one, other, 0); });
  copy_often(other, one, 1);
  there.join();
  EXPECT_EQ(one[3], 5u);
  EXPECT_EQ(other[3], 5u);
}

TEST_P(ObjectsOfThreads, AHostAccessOfAnotherThreadIsAwaited) {
  Object<std::uint64_t> object(words_of_block, options());
  Stream stream(Device::host());
  std::unique_ptr<HostAccess> access;
  std::thread([&] { access = std::make_unique<HostAccess>(object, Access::read); }).join();
  { const HostAccess own(object, Access::read); }
  std::thread ending([&] {
    std::this_thread::sleep_for(20ms);
    access.reset();
  });
  run_on(stream, object, add_to_all(1));
  ending.join();
  EXPECT_EQ(object[0], 1u);
}

/// A release does not wait for what the thread itself would have to end.
TEST_P(ObjectsOfThreads, AreReleasedAfterAccessesOfOthersOnly) {
  Object<std::uint64_t> object(words_of_block, options());
  const auto refused = [&](const char* access) {
    check_error(Status::invalid_argument, {"the release of " + address_of(object), access},
                [&] { object.memory().release(); });
  };
  {
    const HostAccess access(object, Access::write);
    refused("own HostAccess");
  }
  {
    Stream stream(Device::host());
    const DeviceAccess access(stream, {&object.state()});
    refused("own DeviceAccess");
  }
  std::atomic<bool> is_open{false}, ends{false};
  std::thread other([&] {
    const HostAccess access(object, Access::write);
    is_open = true;
    std::this_thread::sleep_for(20ms);
    ends = true;
  });
  while (!is_open) std::this_thread::yield();
  object.memory().release();
  EXPECT_TRUE(ends) << "the other thread's access was not waited for";
  other.join();
}

/// An access to read covers a block that the host alone has, and others.
TEST_P(ObjectsOfThreads, WritesAfterAHostAccessAreNoticed) {
  Object<std::uint64_t> object(4 * words_of_block, options());
  Stream stream(Device::host());
  run_on(stream, object, add_to_all(1));
  object[0] = 5;
  { const HostAccess access(object, Access::read); }
  object[3 * words_of_block] = 9;
  run_on(stream, object, add_to_all(100));
  EXPECT_EQ(object[0], 105u);
  EXPECT_EQ(object[words_of_block], 101u);
  EXPECT_EQ(object[3 * words_of_block], 109u);
}

/// Threads that wait for one block go on together: what the library has noted of their accesses must not count against
/// the launches that they make next.
TEST_P(ObjectsOfThreads, LaunchAfterAccessesThatOthersWaitForToo) {
  constexpr std::uint64_t threads = 8, rounds = 150;
  Object<std::uint64_t> object(64 * words_of_block, options());
  Stream stream(Device::host());
  std::vector<std::thread> users;
  for (std::uint64_t thread = 0; thread < threads; ++thread)
    users.emplace_back([&, thread] {
      for (std::uint64_t round = 0; round < rounds; ++round) {
        for (std::size_t word = thread; word < object.size(); word += 8 * threads) object[word] += 1;
        const DeviceAccess access(stream, {&object.state()});
      }
    });
  for (std::thread& user : users) user.join();
  for (std::uint64_t thread = 0; thread < threads; ++thread) ASSERT_EQ(object[thread], rounds) << thread;
}

/// Objects, streams and counts of the threads of a mix. The upper half of each word counts kernels, the lower half the
/// CPU's additions.
struct Mix {
  static constexpr std::uint64_t kernel = std::uint64_t{1} << 32;
  static constexpr std::size_t words = 8 * words_of_block;
  explicit Mix(const ObjectOptions& options) {
    for (int each = 0; each < 3; ++each) {
      objects.emplace_back(words, options);
      streams.emplace_back(Device::host(each));
    }
  }
  std::vector<Object<std::uint64_t>> objects;
  std::vector<Stream> streams;
  std::array<std::atomic<std::uint64_t>, 3> kernels{}, additions{};
};

/// One operation, chosen at random, on an object of the mix.
void use_once(Mix& mix, Stream& own, std::mt19937& random) {
  const std::size_t which = random() % mix.objects.size();
  Object<std::uint64_t>& object = mix.objects[which];
  Stream& stream = random() % 2 == 0 ? own : mix.streams[random() % mix.streams.size()];
  switch (random() % 4) {
    case 0:
      run_on(stream, object, add_to_all(Mix::kernel));
      ++mix.kernels[which];
      return;
    case 1:  // one instruction, which a fault repeats as a whole
      __atomic_fetch_add(&object[random() % Mix::words], 1, __ATOMIC_RELAXED);
      ++mix.additions[which];
      return;
    case 2: {
      const HostAccess access(object, random() % 2 == 0 ? Access::read : Access::write);
      std::this_thread::yield();
      return;
    }
    default: {  // all words have seen the same kernels
      std::vector<std::uint64_t> all(Mix::words);
      beeline::hpe::copy(all.data(), object.data(), all.size() * 8, stream);
      stream.synchronize();
      for (const std::uint64_t word : all) ASSERT_EQ(word / Mix::kernel, all.front() / Mix::kernel);
    }
  }
}

TEST_P(ObjectsOfThreads, LoseNothingInAMixOfUses) {
  constexpr int threads = 4, operations = 300;
  Mix mix(options());
  std::vector<std::thread> users;
  for (int thread = 0; thread < threads; ++thread)
    users.emplace_back([&mix, thread] {
      std::mt19937 random(static_cast<unsigned>(thread));
      Stream own(Device::host(thread));
      for (int each = 0; each < operations; ++each) use_once(mix, own, random);
      own.synchronize();
    });
  for (std::thread& user : users) user.join();
  for (Stream& stream : mix.streams) stream.synchronize();
  for (std::size_t which = 0; which < mix.objects.size(); ++which) {
    std::uint64_t additions = 0;
    for (const std::uint64_t word : mix.objects[which]) {
      ASSERT_EQ(word / Mix::kernel, mix.kernels[which]);
      additions += word % Mix::kernel;
    }
    EXPECT_EQ(additions, mix.additions[which]);
  }
}

}  // namespace

}  // namespace beeline_test::objects_of_threads
