// SPDX-License-Identifier: Apache-2.0
#include <barrier>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "beeline/hpe/copy.hpp"
#include "beeline/hpe/memory.hpp"
#include "hpe/bare_calls.hpp"
#include "hpe/floating.hpp"
#include "hpe/report.hpp"
#include "hpe/small_kernel.hpp"

namespace beeline::bench::hpe {

namespace {

using beeline::hpe::Device;
using beeline::hpe::DeviceMemory;
using beeline::hpe::LockTimes;
using beeline::hpe::PinnedMemory;
using beeline::hpe::Stream;

constexpr int rounds = 5;
constexpr double run_s = 0.1;

/// What one thread works with.
struct Work {
  Work(Device device, std::size_t bytes) : stream(device), there(device, bytes), here(bytes) {
    std::memset(here.data(), 0, bytes);
  }
  Stream stream;
  DeviceMemory there;
  PinnedMemory here;
};

/// Operations a second of all threads together.
///   operation  one operation of a thread
double rate_of(std::vector<Work>& works, const std::function<void(Work&)>& operation) {
  std::barrier ready(static_cast<std::ptrdiff_t>(works.size()));
  std::vector<double> rates(works.size());
  std::vector<std::thread> threads;
  for (std::size_t index = 0; index < works.size(); ++index)
    threads.emplace_back([&, index] {
      operation(works[index]);
      ready.arrive_and_wait();
      const double begun = now_s();
      int done = 0;
      for (; now_s() < begun + run_s; ++done) operation(works[index]);
      rates[index] = done / (now_s() - begun);
    });
  for (std::thread& thread : threads) thread.join();
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

LockTimes since(const LockTimes& before, const LockTimes& after) {
  return {after.calls - before.calls, after.held_ns - before.held_ns, after.longest_ns,
          after.waited_ns - before.waited_ns};
}

/// Prints throughput, and for each call the time that its lock was held and waited for.
void measure(Device device, int threads, std::size_t bytes) {
  std::vector<Work> works;
  for (int index = 0; index < threads; ++index) works.emplace_back(device, bytes);
  const auto operation = [bytes](Work& work) {
    beeline::hpe::copy(work.there.data(), work.here.data(), bytes, work.stream);
    launch_small(work.stream, work.there.as<std::uint32_t>(), 1024);
    beeline::hpe::copy(work.here.data(), work.there.data(), bytes, work.stream);
    work.stream.synchronize();
  };
  Samples throughput, held, waited;
  for (int round = 0; round < rounds; ++round) {
    const LockTimes before = device.lock_times();
    const double rate = rate_of(works, operation);
    const LockTimes times = since(before, device.lock_times());
    throughput.values.push_back(2 * rate * static_cast<double>(bytes) / 1e9);
    held.values.push_back(static_cast<double>(times.held_ns) / static_cast<double>(times.calls));
    waited.values.push_back(static_cast<double>(times.waited_ns) / static_cast<double>(times.calls));
  }
  const nlohmann::ordered_json settings = {{"threads", threads}, {"longest_hold_ns", device.lock_times().longest_ns}};
  print({"hpe_threads", "hpe/copies_and_kernel", "GB/s", bytes, settings}, throughput, std::nullopt);
  print({"hpe_lock", "hpe/held", "ns", bytes, settings}, held, std::nullopt);
  print({"hpe_lock", "hpe/waited", "ns", bytes, settings}, waited, std::nullopt);
}

/// One lock for the device, held during whole transfers, as before floating contexts. Source: seed 001, figure 8,
/// CUDA-base.
void measure_one_lock(Device device, int threads, std::size_t bytes) {
  std::vector<Work> works;
  for (int index = 0; index < threads; ++index) works.emplace_back(device, bytes);
  std::mutex lock;
  double held_s = 0, waited_s = 0;
  std::size_t calls = 0;
  const auto transfer = [&](Work& work, void* to, const void* from) {
    const double asked = now_s();
    const std::lock_guard guard(lock);
    const double taken = now_s();
    bare_copy_and_wait(work.stream, to, from, bytes);
    held_s += now_s() - taken, waited_s += taken - asked, ++calls;
  };
  const auto operation = [&](Work& work) {
    transfer(work, work.there.data(), work.here.data());
    launch_small(work.stream, work.there.as<std::uint32_t>(), 1024);
    work.stream.synchronize();
    transfer(work, work.here.data(), work.there.data());
  };
  Samples throughput, held, waited;
  for (int round = 0; round < rounds; ++round) {
    held_s = waited_s = 0, calls = 0;
    throughput.values.push_back(2 * rate_of(works, operation) * static_cast<double>(bytes) / 1e9);
    held.values.push_back(held_s * 1e9 / static_cast<double>(calls));
    waited.values.push_back(waited_s * 1e9 / static_cast<double>(calls));
  }
  const nlohmann::ordered_json settings = {{"threads", threads}};
  print({"hpe_threads", "bare/one_lock", "GB/s", bytes, settings}, throughput, std::nullopt);
  print({"hpe_lock", "bare/held", "ns", bytes, settings}, held, std::nullopt);
  print({"hpe_lock", "bare/waited", "ns", bytes, settings}, waited, std::nullopt);
}

}  // namespace

void measure_threads(const std::vector<std::size_t>& sizes) {
  const Device device = Device::all().front();
  for (const std::size_t bytes : sizes)
    for (const int threads : {1, 2, 4, 8, 16}) {
      measure(device, threads, bytes);
      if (threads == 1 || threads == 16) measure_one_lock(device, threads, bytes);
    }
}

}  // namespace beeline::bench::hpe
