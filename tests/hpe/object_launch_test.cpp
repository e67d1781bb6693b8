// SPDX-License-Identifier: Apache-2.0
// Objects at launches, on GPUs where there are any, otherwise on host devices.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "beeline/core/macros.hpp"
#include "beeline/hpe/copy.hpp"
#include "beeline/hpe/files.hpp"
#include "beeline/hpe/launch.hpp"
#include "beeline/hpe/object.hpp"
#include "tests/hpe/file_folder.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::launched_objects {

namespace {

using namespace beeline::hpe;
using beeline::Status;

constexpr std::size_t words_of_block = std::size_t{64} << 7;

struct AddToAll {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, std::uint64_t* all, std::size_t count, std::uint64_t value) const {
    for (std::size_t i = grid.thread_rank(); i < count; i += grid.size()) all[i] += value;
  }
};
struct AddTo {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, std::uint64_t* sums, const std::uint64_t* all,
                                      std::size_t count) const {
    for (std::size_t i = grid.thread_rank(); i < count; i += grid.size()) sums[i] += all[i];
  }
};

const beeline::LaunchOptions shape{.blocks = 8, .threads = 128};

class LaunchedObjects : public testing::TestWithParam<Protocol> {
 protected:
  [[nodiscard]] ObjectOptions options(Hint hint = Hint::none) const {
    ObjectOptions with;
    with.protocol = GetParam();
    with.hint = hint;
    return with;
  }
  /// Managed memory exists on GPUs alone.
  void SetUp() override {
    if (GetParam() == Protocol::managed && Device::gpus().empty()) GTEST_SKIP() << "managed memory needs a GPU";
  }
  const std::vector<Device> devices = Device::all(2);
};

INSTANTIATE_TEST_SUITE_P(Devices, LaunchedObjects,
                         testing::Values(Protocol::protection, Protocol::tracking, Protocol::managed),
                         [](const auto& each) { return std::string(name(each.param)); });

/// Managed memory is not acquired: the program waits itself.
void wait_if_managed(Protocol protocol, Stream& stream) {
  if (protocol == Protocol::managed) stream.synchronize();
}

TEST_P(LaunchedObjects, MoveWhatChanges) {
  Object<std::uint64_t> object(40 * words_of_block + 3, options());
  Stream stream(devices.front());
  if (devices.front().is_gpu()) {
    EXPECT_EQ(object.on(devices.front()), object.data()) << "one pointer";
  }
  for (std::uint64_t round = 1; round <= 3; ++round) {
    for (std::size_t i = 0; i < object.size(); i += 999) object[i] += 1000;
    launch(stream, shape, AddToAll{}, object, object.size(), 1ull);
    wait_if_managed(GetParam(), stream);
    for (std::size_t i = 0; i < object.size(); ++i)
      ASSERT_EQ(object[i], round * (i % 999 == 0 ? 1001 : 1)) << "element " << i << ", round " << round;
  }
}

/// Transfers have their object from the call on, as kernels do, and neither waits for what is behind it.
TEST_P(LaunchedObjects, FilesOnStreamsFollowKernels) {
  const FileFolder folder;
  Object<std::uint64_t> object(3 * words_of_block + 5, options()), back(object.size(), options());
  for (std::size_t i = 0; i < object.size(); ++i) object[i] = i;
  Stream stream(devices.front());
  launch(stream, shape, AddToAll{}, object, object.size(), 5ull);
  write_file(folder / "file", object.data(), object.size() * 8, stream);
  launch(stream, shape, AddToAll{}, object, object.size(), 1000ull);
  read_file(folder / "file", back.data(), back.size() * 8, stream);
  launch(stream, shape, AddToAll{}, back, back.size(), 1ull);
  wait_if_managed(GetParam(), stream);
  for (std::size_t i = 0; i < object.size(); ++i) {
    ASSERT_EQ(object[i], i + 1005);
    ASSERT_EQ(back[i], i + 6);
  }
}

TEST_P(LaunchedObjects, TwoOfOneLaunch) {
  Object<std::uint64_t> sums(3 * words_of_block, options()), all(3 * words_of_block, options(Hint::read_mostly));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  Stream stream(devices.front());
  for (int round = 0; round < 5; ++round) launch(stream, shape, AddTo{}, sums, all, all.size());
  wait_if_managed(GetParam(), stream);
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(sums[i], 5 * all[i]);
  launch(stream, shape, AddTo{}, sums, sums, sums.size());
  wait_if_managed(GetParam(), stream);
  EXPECT_EQ(sums[7], 70u);
}

TEST_P(LaunchedObjects, ServeSeveralDevices) {
  for (const Device home : devices) {
    ObjectOptions with = options();
    with.device = home;
    Object<std::uint64_t> object(9 * words_of_block, with);
    for (std::uint64_t round = 1; round <= 3; ++round) {
      for (const Device device : devices) {
        Stream stream(device);
        launch(stream, shape, AddToAll{}, object, object.size(), 1ull);
        wait_if_managed(GetParam(), stream);
      }
      object[5 * words_of_block] += 0;
      for (std::size_t i = 0; i < object.size(); ++i) ASSERT_EQ(object[i], round * devices.size());
    }
  }
}

TEST_P(LaunchedObjects, StreamingMovesWhatTheHostWrites) {
  Object<std::uint64_t> object(9 * words_of_block, options(Hint::streaming)), sums(9 * words_of_block, options());
  Stream stream(devices.front());
  for (std::uint64_t round = 1; round <= 3; ++round) {
    for (std::uint64_t& each : object) each = round;
    launch(stream, shape, AddTo{}, sums, object, object.size());
    wait_if_managed(GetParam(), stream);
  }
  for (std::size_t i = 0; i < sums.size(); ++i) ASSERT_EQ(sums[i], 6u);
}

TEST_P(LaunchedObjects, SystemCallsUseThemInAHostAccess) {
  Object<std::uint64_t> object(3 * words_of_block, options());
  Stream stream(devices.front());
  launch(stream, shape, AddToAll{}, object, object.size(), 77ull);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  {
    const HostAccess access(object, words_of_block - 1, 2, Access::read);
    EXPECT_EQ(::write(ends[1], &object[words_of_block - 1], 16), 16);
  }
  {
    const HostAccess access(object, 0, 2, Access::write);
    EXPECT_EQ(::read(ends[0], object.data(), 16), 16);
    object[0] = 5;
  }
  launch(stream, shape, AddToAll{}, object, object.size(), 1ull);
  wait_if_managed(GetParam(), stream);
  EXPECT_EQ(object[0], 6u);
  EXPECT_EQ(object[1], 78u);
  for (const int end : ends) ::close(end);
}

TEST_P(LaunchedObjects, AreReachedByCopies) {
  Object<std::uint64_t> object(5 * words_of_block, options());
  std::vector<std::uint64_t> all(object.size(), 3), back(object.size());
  Stream stream(devices.front());
  beeline::hpe::copy(object.data(), all.data(), all.size() * 8);
  launch(stream, shape, AddToAll{}, object, object.size(), 1ull);
  beeline::hpe::copy(back.data(), object.data(), all.size() * 8, stream);
  stream.synchronize();
  EXPECT_EQ(back, std::vector<std::uint64_t>(object.size(), 4));
  EXPECT_EQ(object[4], 4u);
}

/// Also between devices that do not reach each other: the destination stays where it is.
TEST_P(LaunchedObjects, AreCopiedBetweenDevices) {
  ObjectOptions here = options(), there = options();
  here.device = devices.front(), there.device = devices.back();
  Object<std::uint64_t> from(5 * words_of_block, here), to(5 * words_of_block, there);
  Stream first(devices.front()), second(devices.back());
  launch(first, shape, AddToAll{}, from, from.size(), 7ull);
  launch(second, shape, AddToAll{}, to, to.size(), 1ull);
  wait_if_managed(GetParam(), first);
  wait_if_managed(GetParam(), second);
  beeline::hpe::copy(to.data() + 3, from.data() + 5, words_of_block * 8);  // parts of two blocks
  launch(second, shape, AddToAll{}, to, to.size(), 10ull);
  wait_if_managed(GetParam(), second);
  second.synchronize();
  EXPECT_EQ(to.memory().statistics().fetched_bytes, 0u);
  for (std::size_t i = 0; i < to.size(); ++i) ASSERT_EQ(to[i], i >= 3 && i < 3 + words_of_block ? 17u : 11u) << i;
  for (const std::uint64_t each : from) ASSERT_EQ(each, 7u);
}

/// BEELINE_TEST_WRITES is the number of writes of each thread.
TEST_P(LaunchedObjects, WritesOfThreadsAreNotLost) {
  if (GetParam() == Protocol::managed) GTEST_SKIP() << "managed memory is not acquired: programs order accesses";
  const char* const asked = std::getenv("BEELINE_TEST_WRITES");
  const std::size_t writes = asked == nullptr ? 10'000 : std::stoul(asked);
  constexpr std::size_t threads = 16, words = 4096;
  Object<std::uint64_t> object(words * threads, options());
  Stream stream(devices.front());
  std::atomic<std::size_t> running{threads};
  std::vector<std::thread> writers;
  for (std::size_t thread = 0; thread < threads; ++thread)
    writers.emplace_back([&, thread] {
      for (std::size_t write = 0; write < writes; ++write) {
        auto* const half = reinterpret_cast<volatile std::uint32_t*>(&object[(write % words) * threads + thread]);
        *half = *half + 1;
      }
      --running;
    });
  std::uint64_t kernels = 0;
  do {
    launch(stream, shape, AddToAll{}, object, object.size(), std::uint64_t{1} << 32);
    ++kernels;
    stream.synchronize();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (running > 0);
  for (std::thread& writer : writers) writer.join();
  RecordProperty("kernels", std::to_string(kernels));
  for (std::size_t i = 0; i < object.size(); ++i)
    ASSERT_EQ(object[i], (kernels << 32) + writes / words + ((i / threads) < writes % words ? 1 : 0));
}

struct StoreToNobody {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, std::uint64_t* all, std::uint64_t distance) const {
    if (grid.thread_rank() == 0) all[distance] = 1;
  }
};

/// A GPU is unusable after it, so this case has a process of its own.
TEST(KernelsThatFault, MakeTheirObjectsUnusable) {
  if (Device::gpus().empty()) GTEST_SKIP() << "needs a GPU: kernels of host devices end the process by their faults";
  const Device gpu = Device::gpu(0);
  Object<std::uint64_t> object(words_of_block), other(words_of_block);
  Stream stream(gpu);
  launch(stream, shape, AddToAll{}, object, object.size(), 1ull);
  launch(stream, shape, StoreToNobody{}, object, std::uint64_t{1} << 40);
  try {
    HostAccess(object, Access::read);
    ADD_FAILURE() << "no error";
  } catch (const beeline::Error& error) {
    EXPECT_TRUE(error.code() == Status::internal || error.code() == Status::unavailable) << error.what();
  }
  other[5] = 3;  // never used by the GPU
  EXPECT_EQ(other[5], 3u);
}

}  // namespace

}  // namespace beeline_test::launched_objects
