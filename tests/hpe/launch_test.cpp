// SPDX-License-Identifier: Apache-2.0
#include "beeline/hpe/launch.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "beeline/hpe/copy.hpp"
#include "beeline/hpe/memory.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test {

namespace {

namespace hpe = beeline::hpe;
using namespace hpe;
using beeline::Status;

/// Each element becomes its index times a factor, plus what it was.
struct AddMultiples {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, std::uint64_t* words, std::size_t count, std::uint64_t factor) const {
    for (std::size_t i = grid.thread_rank(); i < count; i += grid.size()) words[i] += i * factor;
  }
};

/// More bytes than nvcc copies in registers.
struct ManyWords {
  std::uint64_t words[40];
};

struct SumOfMany {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, ManyWords many, std::uint64_t* sum) const {
    if (grid.thread_rank() != 0) return;
    *sum = 0;
    for (const std::uint64_t word : many.words) *sum += word;
  }
};

struct CopyFrom {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const std::uint64_t* from, std::uint64_t* to,
                                      std::size_t count) const {
    for (std::size_t i = grid.thread_rank(); i < count; i += grid.size()) to[i] = from[i];
  }
};

struct Throw {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& /*grid*/) const {
#if !BEELINE_ON_GPU
    throw std::out_of_range("from the kernel");
#endif
  }
};

struct StoreTo {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& /*grid*/, std::uint64_t* address) const {
    *address = 1;
  }
};

constexpr std::size_t count = 10'000;

std::vector<std::uint64_t> words_at(const DeviceMemory& memory) {
  std::vector<std::uint64_t> words(count);
  hpe::copy(words.data(), memory.data(), count * sizeof(std::uint64_t));
  return words;
}

TEST(LaunchOfDevices, KernelsRunInOrder) {
  for (const Device device : Device::all(2)) {
    const DeviceMemory memory(device, count * sizeof(std::uint64_t));
    Stream stream(device);
    stream.fill(memory.data(), 0, memory.bytes());
    for (const std::uint64_t factor : {2, 3, 5})
      hpe::launch(stream, {.blocks = 8, .threads = 64}, AddMultiples{}, memory.as<std::uint64_t>(), count, factor);
    stream.synchronize();
    const std::vector<std::uint64_t> words = words_at(memory);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(words[i], 10 * i) << device.name();
  }
}

TEST(LaunchOfDevices, LargeArguments) {
  ManyWords many;
  std::uint64_t expected = 0, sum = 0;
  for (std::uint64_t& word : many.words) expected += word = 7 * expected + 1;
  const Device device = Device::all().front();
  const DeviceMemory memory(device, sizeof sum);
  Stream stream(device);
  hpe::launch(stream, {}, SumOfMany{}, many, memory.as<std::uint64_t>());
  hpe::copy(&sum, memory.data(), sizeof sum, stream);
  stream.synchronize();
  EXPECT_EQ(sum, expected);
}

/// Kernels load from another device's memory.
TEST(LaunchOfDevices, RemoteMemory) {
  const std::vector<Device> devices = Device::all(2);
  if (devices.size() < 2) GTEST_SKIP() << missing_gpus(2);
  if (!devices[0].reaches(devices[1])) GTEST_SKIP() << "the devices do not reach each other";
  const DeviceMemory there(devices[1], count * sizeof(std::uint64_t)), here(devices[0], there.bytes());
  std::vector<std::uint64_t> words(count);
  for (std::size_t i = 0; i < count; ++i) words[i] = i * i;
  hpe::copy(there.data(), words.data(), there.bytes());
  Stream stream(devices[0]);
  hpe::launch(stream, {.blocks = 4}, CopyFrom{}, there.as<const std::uint64_t>(), here.as<std::uint64_t>(), count);
  stream.synchronize();
  EXPECT_EQ(words_at(here), words);
}

TEST(LaunchOfDevices, ThreadsDriveAllDevices) {
  constexpr int threads = 16, rounds = 10;
  const std::vector<Device> devices = Device::all(4);
  std::atomic<int> wrong{0};
  std::vector<std::thread> all;
  for (int index = 0; index < threads; ++index)
    all.emplace_back([&, index] {
      for (int round = 0; round < rounds; ++round) {
        const Device device = devices[static_cast<std::size_t>(index + round) % devices.size()];
        const DeviceMemory memory(device, count * sizeof(std::uint64_t));
        Stream stream(device);
        stream.fill(memory.data(), 0, memory.bytes());
        hpe::launch(stream, {.blocks = 4, .threads = 128}, AddMultiples{}, memory.as<std::uint64_t>(), count,
                    static_cast<std::uint64_t>(index));
        stream.synchronize({.poll_period = std::chrono::microseconds(5)});
        const std::vector<std::uint64_t> words = words_at(memory);
        for (std::size_t i = 0; i < count; ++i) wrong += words[i] != i * static_cast<std::size_t>(index);
      }
    });
  for (std::thread& each : all) each.join();
  EXPECT_EQ(wrong, 0);
}

TEST(LaunchOfDevices, ShapesThatNoGridHasAreRefused) {
  Stream stream(Device::all().front());
  const auto is_refused = [&](const beeline::LaunchOptions& options, std::string_view word) {
    check_error(Status::invalid_argument, {"launching", "StoreTo", word},
                [&] { hpe::launch(stream, options, StoreTo{}, nullptr); });
  };
  is_refused({.blocks = 0}, "0 blocks");
  is_refused({.threads = 0}, "0 threads");
  is_refused({.waits = true}, "worlds");
}

TEST(LaunchOfDevices, ExceptionsOfKernelsNameKernelAndDevice) {
  Stream stream(Device::host(1));
  hpe::launch(stream, {}, Throw{});
  try {
    stream.synchronize();
    FAIL() << "no error";
  } catch (const beeline::Error& error) {
    EXPECT_EQ(error.code(), Status::internal);
    BEELINE_CHECK_CONTAINS(error.what(), "Throw on host device 1 has failed: from the kernel");
    EXPECT_THROW(std::rethrow_if_nested(error), std::out_of_range);
  }
  hpe::launch(stream, {.name = "named"}, Throw{});
  check_error(Status::internal, {"named on host device 1"}, [&] { stream.synchronize(); });
  stream.synchronize();
}

/// Makes a GPU unusable for the rest of the process.
TEST(FaultingKernels, EndWaitsAndNameTheGpu) {
  if (const std::string why = missing_gpus(1); !why.empty()) GTEST_SKIP() << why;
  const Device gpu = Device::gpu(0);
  Stream stream(gpu), other(gpu);
  hpe::launch(stream, {.blocks = 1, .threads = 32}, StoreTo{}, reinterpret_cast<std::uint64_t*>(0x1000));
  check_error(Status::internal, {gpu.name(), "a kernel or copy has failed", "illegal"}, [&] { stream.synchronize(); });
  check_error(Status::unavailable, {gpu.name(), "cannot be used any more"}, [&] { other.synchronize(); });
  check_error(Status::unavailable, {gpu.name()}, [&] { DeviceMemory(gpu, 64); });
}

}  // namespace

}  // namespace beeline_test
