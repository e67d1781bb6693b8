// SPDX-License-Identifier: Apache-2.0
#include "beeline/hpe/object.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/host/world.hpp"
#include "beeline/hpe/copy.hpp"
#include "beeline/hpe/memory.hpp"
#include "tests/hpe/object_cases.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test::objects {

namespace {

using namespace beeline::hpe;
using beeline::Status;
using namespace std::chrono_literals;

ObjectOptions blocks_of(std::size_t bytes) {
  ObjectOptions options = small_blocks();
  options.block_bytes = bytes;
  return options;
}

class Objects : public EachProtocol {};
INSTANTIATE_TEST_SUITE_P(Host, Objects, host_protocols, protocol_name);

TEST_P(Objects, AreZeroOnHostAndDevice) {
  Object<std::uint64_t> object(10 * words_of_block, options());
  EXPECT_EQ(object[5 * words_of_block], 0u);
  Stream stream(Device::host());
  std::uint64_t sum = 1;
  run_on(stream, object, [&](std::uint64_t* all, std::size_t count) { sum = std::accumulate(all, all + count, 0ull); });
  stream.synchronize();
  EXPECT_EQ(sum, 0u);
  EXPECT_EQ(object.memory().statistics().sent_bytes, 0u) << "blocks that nobody has written are not moved";
}

TEST_P(Objects, MoveWhatChanges) {
  Object<std::uint64_t> object(16 * words_of_block, options());
  std::iota(object.begin(), object.end(), 0);
  Stream stream(Device::host());
  run_on(stream, object, add_to_all(1000));
  for (std::size_t i = 0; i < object.size(); ++i) ASSERT_EQ(object[i], i + 1000);  // without synchronization
  object[7] = 1;
  object[9 * words_of_block] = 2;
  run_on(stream, object, add_to_all(5));
  EXPECT_EQ(object[7], 6u);
  EXPECT_EQ(object[9 * words_of_block], 7u);
  EXPECT_EQ(object[8], 8u + 1005);
}

TEST_P(Objects, SendOnlyTheBlocksThatAreWritten) {
  Object<std::uint64_t> object(64 * words_of_block, options());
  Stream stream(Device::host());
  run_on(stream, object, add_to_all(0));
  for (const std::size_t each : {5, 50, 20}) object[each * words_of_block] = 9;
  run_on(stream, object, add_to_all(1));
  EXPECT_EQ(object.memory().statistics().sent_bytes, 3 * block);
  EXPECT_EQ(object[20 * words_of_block], 10u);
  EXPECT_EQ(object[20 * words_of_block + 1], 1u);
}

TEST_P(Objects, AccessesWaitForTheKernel) {
  Object<std::uint64_t> object(4 * words_of_block, options());
  Stream stream(Device::host());
  std::atomic<bool> may_end{false};
  run_on(stream, object, [&](std::uint64_t* all, std::size_t) {
    while (!may_end) std::this_thread::sleep_for(1ms);
    all[0] = 42;
  });
  std::atomic<std::uint64_t> seen{1};
  std::thread reader([&] { seen = object[0]; });
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(seen, 1u) << "the access ended before the kernel";
  may_end = true;
  reader.join();
  EXPECT_EQ(seen, 42u);
}

TEST_P(Objects, KernelsOnOneObjectFollowEachOther) {
  Object<std::uint64_t> object(4 * words_of_block, options());
  Stream first(Device::host()), second(Device::host());
  object[0] = 1;
  run_on(first, object, [](std::uint64_t* all, std::size_t) {
    std::this_thread::sleep_for(30ms);
    all[0] *= 10;
  });
  run_on(second, object, [](std::uint64_t* all, std::size_t) { all[0] += 1; });
  EXPECT_EQ(object[0], 11u);
}

/// As for a CUDA graph: work that knows the object's address on the device is repeated, each time in a DeviceAccess.
TEST_P(Objects, ServeRepeatedWork) {
  Object<std::uint64_t> object(3 * words_of_block, options());
  Stream stream(Device::host());
  const auto work = [all = object.on(stream.device()), count = object.size()] { add_to_all(10)(all, count); };
  for (std::uint64_t run = 0; run < 5; ++run) {
    object[run] += 1;
    {
      const DeviceAccess access(stream, {&object.state()});
      stream.enqueue(work);
    }
    EXPECT_EQ(object[run], 10 * (run + 1) + 1);
  }
  EXPECT_EQ(object[2 * words_of_block], 50u);
}

TEST_P(Objects, ServeSeveralDevices) {
  Object<std::uint64_t> object(8 * words_of_block, options());
  std::vector<Stream> streams;
  for (int device = 0; device < 4; ++device) streams.emplace_back(Device::host(device));
  EXPECT_NE(object.on(Device::host(1)), object.on(Device::host(2)));
  for (std::uint64_t round = 1; round <= 3; ++round) {
    for (Stream& stream : streams) run_on(stream, object, add_to_all(1));
    object[words_of_block * round] += 100;
    for (std::size_t i = 0; i < object.size(); ++i)
      ASSERT_EQ(object[i], 4 * round + (i % words_of_block == 0 && i > 0 && i <= words_of_block * round ? 100u : 0u));
  }
}

TEST_P(Objects, ReadMostlyStaysOnTheHost) {
  Object<std::uint64_t> object(32 * words_of_block, options(Hint::read_mostly));
  std::iota(object.begin(), object.end(), 0);
  std::vector<Stream> streams;
  for (int device = 0; device < 2; ++device) streams.emplace_back(Device::host(device));
  std::array<std::uint64_t, 2> sums{};
  for (std::size_t each = 0; each < 2; ++each)
    run_on(streams[each], object,
           [&, each](std::uint64_t* all, std::size_t count) { sums[each] = std::accumulate(all, all + count, 0ull); });
  for (std::size_t i = 0; i < object.size(); ++i) ASSERT_EQ(object[i], i);
  for (Stream& stream : streams) stream.synchronize();
  EXPECT_EQ(sums[0], object.size() * (object.size() - 1) / 2);
  EXPECT_EQ(sums[1], sums[0]);
  EXPECT_EQ(object.memory().statistics().fetched_bytes, 0u);
}

TEST_P(Objects, StreamingMovesWhatTheHostWrites) {
  Object<std::uint64_t> object(64 * words_of_block, options(Hint::streaming));
  Stream stream(Device::host());
  for (std::uint64_t round = 1; round <= 4; ++round) {
    for (std::uint64_t& each : object) each = round;
    std::uint64_t sum = 0;
    run_on(stream, object,
           [&](std::uint64_t* all, std::size_t count) { sum = std::accumulate(all, all + count, 0ull); });
    stream.synchronize();
    ASSERT_EQ(sum, round * object.size());
  }
  EXPECT_EQ(object.memory().statistics().fetched_bytes, 0u);
}

/// Objects that have some large pages, one whole one, or none; written from the start and from the middle.
TEST_P(Objects, StreamingInLargePages) {
  constexpr std::size_t large = std::size_t{2} << 20;
  for (const std::size_t bytes : {large - block, large, 2 * large + 3 * block}) {
    Object<std::uint64_t> object(bytes / 8, options(Hint::streaming));
    Stream stream(Device::host());
    for (std::uint64_t round = 1; round <= 4; ++round) {
      const std::size_t first = round % 2 * object.size() / 2;
      for (std::size_t i = 0; i < object.size(); ++i) {
        const std::size_t at = (first + i) % object.size();
        object[at] = round + at;
      }
      std::uint64_t wrong = 0;
      run_on(stream, object, [&](const std::uint64_t* all, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) wrong += all[i] != round + i;
      });
      stream.synchronize();
      ASSERT_EQ(wrong, 0u) << bytes;
      for (std::size_t i = 0; i < object.size(); i += words_of_block) ASSERT_EQ(object[i], round + i);
    }
    EXPECT_EQ(object.memory().statistics().fetched_bytes, 0u);
  }
}

TEST_P(Objects, AreReachedByCopies) {
  Object<std::uint64_t> object(16 * words_of_block, options()), other(16 * words_of_block, options());
  std::vector<std::uint64_t> all(object.size());
  std::iota(all.begin(), all.end(), 7);
  beeline::hpe::copy(object.data(), all.data(), all.size() * 8);
  Stream stream(Device::host());
  run_on(stream, object, add_to_all(1));
  beeline::hpe::copy(other.data(), object.data(), all.size() * 8, stream);
  std::vector<std::uint64_t> back(10);
  beeline::hpe::copy(back.data(), other.data() + words_of_block - 5, 80, stream);
  stream.synchronize();
  for (std::size_t i = 0; i < back.size(); ++i) EXPECT_EQ(back[i], words_of_block - 5 + i + 8);
  EXPECT_EQ(other[other.size() - 1], object.size() + 7);
  EXPECT_EQ(owner_of(object.data() + 1).memory, Memory::object);
  EXPECT_EQ(&object_at(object.data() + 5), &object.state());
}

TEST_P(Objects, CopiesThatCrossTheEndAreRefused) {
  Object<std::uint64_t> object(words_of_block, options());
  std::vector<std::uint64_t> all(2 * words_of_block);
  check_error(Status::invalid_argument, {"beyond its allocation"},
              [&] { beeline::hpe::copy(all.data(), object.data(), 2 * block); });
  check_error(Status::invalid_argument, {"overlap"},
              [&] { beeline::hpe::copy(object.data(), object.data() + 1, block / 2); });
}

TEST_P(Objects, SystemCallsUseThemInAHostAccess) {
  Object<char> object(4 * block, options());
  Stream stream(Device::host());
  run_on(stream, object, [](char* all, std::size_t count) { std::fill_n(all, count, 'd'); });
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  {
    const HostAccess access(object, block - 2, 4, Access::read);
    EXPECT_EQ(::write(ends[1], object.data() + block - 2, 4), 4);
  }
  {
    const HostAccess access(object, 3 * block - 2, 4, Access::write);
    EXPECT_EQ(::read(ends[0], object.data() + 3 * block - 2, 4), 4);
    object[3 * block] = 'h';
  }
  run_on(stream, object, [](char* all, std::size_t) { all[0] = all[3 * block]; });
  EXPECT_EQ(object[0], 'h');
  for (const int end : ends) ::close(end);
}

TEST(TrackedObjects, SystemCallsNeedNoHostAccess) {
  Object<char> object(4 * block, small_blocks(Protocol::tracking));
  if (object.memory().statistics().protocol != Protocol::tracking)
    GTEST_SKIP() << "userfaultfd with Linux 6.7's features is not permitted here";
  Stream stream(Device::host());
  run_on(stream, object, [](char* all, std::size_t count) { std::fill_n(all, count, 'd'); });
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  EXPECT_EQ(::write(ends[1], object.data(), 4), 4);
  EXPECT_EQ(::read(ends[0], object.data() + 2 * block, 4), 4);
  run_on(stream, object, [](char* all, std::size_t) { all[0] = static_cast<char>(all[2 * block] - 'd' + 'e'); });
  EXPECT_EQ(object[0], 'e');
  for (const int end : ends) ::close(end);
}

TEST_P(Objects, AHostAccessHoldsKernels) {
  Object<std::uint64_t> object(words_of_block, options());
  Stream stream(Device::host());
  auto access = std::make_unique<HostAccess>(object, Access::write);
  check_error(Status::invalid_argument, {"HostAccess"}, [&] { run_on(stream, object, add_to_all(1)); });
  std::thread launcher([&] { run_on(stream, object, add_to_all(1)); });
  std::this_thread::sleep_for(20ms);
  object[0] = 5;
  access.reset();
  launcher.join();
  EXPECT_EQ(object[0], 6u);
  check_error(Status::invalid_argument, {"3 elements", "has 512"}, [&] { HostAccess(object, 510, 3, Access::read); });
}

TEST_P(Objects, AKernelThatThrowsLosesNothingOfTheHost) {
  Object<std::uint64_t> object(4 * words_of_block, options());
  Stream stream(Device::host());
  object[0] = 1;
  run_on(stream, object, [](std::uint64_t*, std::size_t) { throw std::runtime_error("a kernel's failure"); });
  std::thread([&] { object[1] = 2; }).join();
  run_on(stream, object, add_to_all(100));  // the stream skips it, with the copy before
  EXPECT_THROW(stream.synchronize(), std::runtime_error);
  EXPECT_EQ(object[0], 1u);
  EXPECT_EQ(object[1], 2u);
  run_on(stream, object, add_to_all(100));
  EXPECT_EQ(object[1], 102u);
}

TEST_P(Objects, LieInMemoryThatWasGiven) {
  DeviceMemory memory(Device::host(3), 4 * block);
  ObjectOptions over = options();
  over.device = Device::host(3);
  over.device_memory = memory.data();
  Object<std::uint64_t> object(4 * words_of_block, over);
  Stream stream(Device::host(3));
  object[5] = 3;
  run_on(stream, object, add_to_all(1));
  stream.synchronize();
  EXPECT_EQ(object.on(Device::host(3)), memory.as<std::uint64_t>());
  EXPECT_EQ(memory.as<std::uint64_t>()[5], 4u);
}

TEST_P(Objects, LieInSymmetricMemory) {
  expect_passed_on_cpus(2, [this](beeline::World& world) {
    const beeline::SymmetricArray<std::uint64_t> memory(world, 2 * words_of_block);
    const int peer = 1 - world.rank();
    ObjectOptions over = options();
    over.device = Device::host(world.rank());
    over.device_memory = memory.data();
    Object<std::uint64_t> object(2 * words_of_block, over);
    object[3] = static_cast<std::uint64_t>(world.rank()) + 10;
    Stream stream(*over.device);
    {
      const DeviceAccess access(stream, {&object.state()});
      stream.synchronize();
      world.barrier();
      world.copy(world.at(memory.data() + words_of_block, peer), memory.data(), block);
      world.barrier();
    }
    BEELINE_CHECK_EQ(static_cast<std::uint64_t>(peer) + 10, object[words_of_block + 3]);
    world.barrier();
  });
}

TEST_P(Objects, AreReleasedOnce) {
  void* const object = allocate(3 * block, options());
  EXPECT_EQ(&object_at(static_cast<char*>(object) + block), &object_at(object));
  check_error(Status::invalid_argument, {"no object"}, [&] { deallocate(static_cast<char*>(object) + 8); });
  deallocate(object);
  check_error(Status::invalid_argument, {"deallocated already"}, [&] { deallocate(object); });
  check_error(Status::invalid_argument, {"no object contains"}, [&] { static_cast<void>(object_at(object)); });
  Object<int> typed(5, options());
  typed.memory().release();
  check_error(Status::invalid_argument, {"was released"}, [&] { typed.memory().release(); });
  check_error(Status::invalid_argument, {"was released"}, [&] { static_cast<void>(typed.data()); });
}

TEST_P(Objects, AreNotReleasedInFlight) {
  ObjectOptions brief = options();
  brief.deadline = 50ms;
  void* const object = allocate(block, brief);
  Stream stream(Device::host());
  std::atomic<bool> may_end{false};
  {
    const DeviceAccess access(stream, {&object_at(object)});
    stream.enqueue([&] {
      while (!may_end) std::this_thread::sleep_for(1ms);
    });
  }
  check_error(Status::deadline, {"kernels, before its release", "0.05 s"}, [&] { deallocate(object); });
  may_end = true;
  stream.synchronize();
  static_cast<char*>(object)[0] = 1;  // still an object
  deallocate(object);
}

TEST(ObjectOptions, ThatAreWrongAreRefused) {
  const auto refused = [](std::initializer_list<std::string_view> words, const ObjectOptions& options,
                          std::size_t count = 1) {
    check_error(Status::invalid_argument, words, [&] { Object<int>(count, options); });
  };
  refused({"0 bytes"}, small_blocks(), 0);
  refused({"too many elements"}, small_blocks(), SIZE_MAX);
  refused({"blocks of 5000 bytes", "power of two"}, blocks_of(5000));
  refused({"blocks of 512 bytes", "at least 4096"}, blocks_of(512));
  ObjectOptions managed = small_blocks();
  managed.protocol = Protocol::managed;
  refused({"managed memory is memory of GPUs", "host device 0"}, managed);
}

TEST(ObjectLimits, AreNamed) {
  const ObjectOptions small = small_blocks();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 1 << 20;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  check_error(Status::no_resource, {"ulimit -f", "smaller objects"}, [&] { Object<char>(2 << 20, small); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);

  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  low = before;
  low.rlim_cur = 3;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  check_error(Status::no_resource, {"limit on open files: 3"}, [&] { Object<char>(block, small); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);

  check_error(Status::no_resource, {"vm.max_map_count", "larger blocks"},
              [&] { Object<char>(std::size_t{1} << 40, small); });
}

}  // namespace

}  // namespace beeline_test::objects
