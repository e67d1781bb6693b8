// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
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
using beeline::hpe::PinnedMemory;
using beeline::hpe::Stream;

/// Two ranges, and the kinds of their memory in words.
struct Pair {
  std::string kinds;
  std::byte *to, *from;
};

/// Memory of each kind.
struct Buffers {
  Buffers(Device device, Device other, std::size_t bytes)
      : here(device, bytes), second(device, bytes), there(other, bytes), pinned(bytes), pageable(bytes) {}
  [[nodiscard]] std::vector<Pair> pairs() {
    return {{"pinned_to_device", here.data(), pinned.data()},     {"device_to_pinned", pinned.data(), here.data()},
            {"pageable_to_device", here.data(), pageable.data()}, {"device_to_pageable", pageable.data(), here.data()},
            {"device_to_device", second.data(), here.data()},     {"device_to_other", there.data(), here.data()}};
  }
  DeviceMemory here, second, there;
  PinnedMemory pinned;
  std::vector<std::byte> pageable;
};

/// The source gets other bytes, the copy is made, and the destination is read back.
template <class Copy>
bool is_right(const Pair& pair, std::size_t bytes, const Copy& copy) {
  static unsigned char seed = 1;
  std::vector<std::byte> data(bytes, static_cast<std::byte>(++seed)), back(bytes);
  for (std::size_t i = 0; i < bytes; i += 61) data[i] = static_cast<std::byte>(i + seed);
  beeline::hpe::copy(pair.from, data.data(), bytes);
  copy();
  beeline::hpe::copy(back.data(), pair.to, bytes);
  return back == data;
}

void measure_blocking(Stream& stream, const Pair& pair, std::size_t bytes) {
  Row row{"hpe_copy", "hpe/copy", "us", bytes, {{"pair", pair.kinds}}};
  const auto by_us = [&] { beeline::hpe::copy(pair.to, pair.from, bytes); };
  const auto bare = [&] { bare_copy(stream.device(), pair.to, pair.from, bytes); };
  const auto waiting = [&] { bare_copy_and_wait(stream, pair.to, pair.from, bytes); };
  const auto add = [&](const std::string& method, const auto& copy) {
    row.method = method;
    const Samples samples = time_of([&](int count) {
      for (int i = 0; i < count; ++i) copy();
    });
    print(row, samples, is_right(pair, bytes, copy));
  };
  add("hpe/copy", by_us);
  add(name_of_copy(stream.device()), bare);
  if (stream.device().is_gpu()) add("bare/enqueue_and_wait", waiting);
}

/// Times of several calls, which take turns. What they enqueue ends between samples, outside the measured time.
template <class... Enqueue>
std::array<Samples, sizeof...(Enqueue)> call_times(Stream& stream, const Enqueue&... enqueue) {
  constexpr int calls = 200;  // fewer than fill the queue of a GPU's stream
  std::array<Samples, sizeof...(Enqueue)> samples;
  for (Samples& each : samples) each.operations = calls;
  for (int sample = -1; sample < sample_count; ++sample) {
    auto next = samples.begin();
    const auto take = [&](const auto& call) {
      const double begun = now_s();
      for (int i = 0; i < calls; ++i) call();
      if (sample >= 0) next->values.push_back((now_s() - begun) * 1e6 / calls);
      stream.synchronize();
      ++next;
    };
    (take(enqueue), ...);
  }
  return samples;
}

void measure_calls(Stream& stream, const Pair& pair, std::size_t bytes) {
  const auto by_us = [&] { beeline::hpe::copy(pair.to, pair.from, bytes, stream); };
  const auto bare = [&] { bare_enqueue(stream, pair.to, pair.from, bytes); };
  const auto add = [&](const char* method, const Samples& samples, const auto& copy) {
    print({"hpe_call", method, "us", bytes, {{"pair", pair.kinds}}}, samples, is_right(pair, bytes, [&] {
            copy();
            stream.synchronize();
          }));
  };
  if (!stream.device().is_gpu()) return add("hpe/copy", call_times(stream, by_us)[0], by_us);
  const auto samples = call_times(stream, by_us, bare);
  add("hpe/copy", samples[0], by_us);
  add("bare/cudaMemcpyAsync", samples[1], bare);
}

/// Time of the call that starts a small kernel, and of the same by a bare call.
void measure_launches(Stream& stream) {
  constexpr std::size_t words = 8;
  const DeviceMemory memory(stream.device(), words * sizeof(std::uint32_t));
  Row row{"hpe_launch", "hpe/launch", "us", 0, {{"pair", "a small kernel"}}};
  const auto by_us = [&] { launch_small(stream, memory.as<std::uint32_t>(), words); };
  const auto bare = [&] { bare_launch_small(stream, memory.as<std::uint32_t>(), words); };
  if (!stream.device().is_gpu()) return print(row, call_times(stream, by_us)[0], std::nullopt);
  const auto samples = call_times(stream, by_us, bare);
  print(row, samples[0], std::nullopt);
  row.method = "bare/cudaLaunchKernel";
  print(row, samples[1], std::nullopt);
}

/// Time of the call that makes `stream` wait for `other`, and of the same by bare calls.
void measure_wait(const std::string& pair, Stream& stream, Stream& other) {
  Row row{"hpe_wait", "hpe/wait_for", "us", 0, {{"pair", pair}}};
  print(row, call_times(stream, [&] { stream.wait_for(other); })[0], std::nullopt);
  other.synchronize();
  if (!stream.device().is_gpu() || !other.device().is_gpu()) return;
  BareWait bare(stream, other);
  row.method = "bare/cudaStreamWaitEvent";
  print(row, call_times(stream, [&] { bare.enqueue(); })[0], std::nullopt);
}

void measure_waits(Stream& stream, Device other) {
  Stream second(stream.device()), there(other), of_host(Device::host());
  measure_wait("for the same device", stream, second);
  if (other != stream.device()) measure_wait("for another device", stream, there);
  if (!stream.device().is_gpu()) return;
  measure_wait("for a host device", stream, of_host);
  measure_wait("of a host device", of_host, stream);
}

}  // namespace

void measure_copy_calls(const std::vector<std::size_t>& sizes) {
  const std::vector<Device> devices = Device::all(2);
  Stream stream(devices.front());
  Buffers buffers(devices.front(), devices.back(), sizes.back());
  constexpr std::size_t call_bytes = 4096;
  for (const Pair& pair : buffers.pairs()) {
    // Copies of pageable memory take as long as the data, and are measured below.
    if (pair.kinds.find("pageable") == std::string::npos && sizes.back() >= call_bytes)
      measure_calls(stream, pair, call_bytes);
    for (const std::size_t bytes : sizes) measure_blocking(stream, pair, bytes);
  }
  measure_launches(stream);
  measure_waits(stream, devices.back());
}

}  // namespace beeline::bench::hpe
