// SPDX-License-Identifier: Apache-2.0
// Sixteen threads use one device at the same time: as threads of one rank, and as ranks that share the device.
// Source: seed 001, floating contexts: any thread uses any device (20 µs polls let 16 threads share one well).
#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "beeline/beeline.hpp"
#include "tests/conformance/suite.hpp"
#include "tests/support/check.hpp"

namespace beeline_test {

namespace {

using namespace beeline;

constexpr int threads = 16, rounds = under_thread_sanitizer ? 4 : 20;
constexpr std::size_t count = 3000;

struct Add {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, std::uint32_t* values, std::uint32_t what) const {
    for (std::size_t i = grid.thread_rank(); i < count; i += grid.size()) values[i] += what;
  }
};

/// Copies data in, changes it by a kernel, and copies it out: on the thread's own stream, or blocking.
void use_device(World& world, Stream& stream, std::uint32_t* memory, std::uint32_t key) {
  std::vector<std::uint32_t> data(count), seen(count);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) data[i] = key * 1000 + round + static_cast<std::uint32_t>(i);
    const bool blocking = round % 2 == 0;
    if (blocking)
      world.copy(memory, data.data(), count * sizeof(std::uint32_t));
    else
      world.copy(memory, data.data(), count * sizeof(std::uint32_t), stream);
    LaunchOptions options;
    options.blocks = 2;
    options.threads = 64;
    options.stream = &stream;
    launch(world, options, Add{}, memory, key + 1);
    const std::unique_ptr<Event> over = stream.make_event();
    if (blocking) {
      world.synchronize(stream);
      world.copy(seen.data(), memory, count * sizeof(std::uint32_t));
    } else {
      world.copy(seen.data(), memory, count * sizeof(std::uint32_t), stream);
      stream.record(*over);
      world.synchronize(*over);
    }
    for (std::size_t i = 0; i < count; ++i) BEELINE_CHECK_EQ(data[i] + key + 1, seen[i]);
  }
  world.synchronize(stream);
}

/// One rank: each thread has a stream of its own, made and destroyed while others work.
void threads_of_a_rank(World& world) {
  const SymmetricArray<std::uint32_t> memory(world, threads * count);
  std::mutex mutex;
  std::string failure;
  std::vector<std::thread> all;
  for (std::uint32_t thread = 0; thread < threads; ++thread)
    all.emplace_back([&, thread] {
      try {
        for (int repetition = 0; repetition < 2; ++repetition) {
          const std::unique_ptr<Stream> stream = world.make_stream();
          use_device(world, *stream, memory.data() + thread * count, thread);
        }
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        failure = join("thread ", thread, ": ", error.what());
      }
    });
  for (std::thread& each : all) each.join();
  if (!failure.empty()) throw CheckFailure(failure);
}

/// Sixteen ranks: they also allocate and free, and copy their results to the next rank.
void ranks_of_a_device(World& world) {
  for (int repetition = 0; repetition < 2; ++repetition) {
    const SymmetricArray<std::uint32_t> memory(world, count), inbox(world, count);
    const std::unique_ptr<Stream> stream = world.make_stream();
    use_device(world, *stream, memory.data(), static_cast<std::uint32_t>(world.rank()));
    const int next = (world.rank() + 1) % world.size(), previous = (world.rank() + world.size() - 1) % world.size();
    world.copy(inbox.at(next), memory.data(), count * sizeof(std::uint32_t), *stream);
    world.synchronize(*stream);
    world.barrier();
    std::uint32_t first = 0;
    world.copy(&first, inbox.data(), sizeof first);
    BEELINE_CHECK_EQ(static_cast<std::uint32_t>(previous) * 1001 + rounds, first);
    world.barrier();
  }
}

void run(int ranks, Devices devices, void (*body)(World&)) {
  std::string why;
  if (devices != Devices::cpu && gpus_here(&why) == 0) GTEST_SKIP() << "no GPU: " << why;
  Config config = test_config();
  config.device = devices == Devices::cpu ? "cpu" : "cuda:0";
  expect_all_passed(run_ranks(WorldKind::threads, ranks, body, config));
}

TEST(ManyThreads, OfOneRankOnTheHostDevice) { run(1, Devices::cpu, threads_of_a_rank); }
TEST(ManyThreads, OfOneRankOnOneGpu) { run(1, Devices::one_gpu, threads_of_a_rank); }
TEST(ManyThreads, AsRanksOnTheHostDevice) { run(threads, Devices::cpu, ranks_of_a_device); }
TEST(ManyThreads, AsRanksOnOneGpu) { run(threads, Devices::one_gpu, ranks_of_a_device); }

}  // namespace

}  // namespace beeline_test
