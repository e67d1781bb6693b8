// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "beeline/hpe/copy.hpp"
#include "beeline/hpe/memory.hpp"
#include "hpe/bare_calls.hpp"
#include "hpe/floating.hpp"
#include "hpe/report.hpp"

namespace beeline::bench::hpe {

namespace {

using beeline::hpe::Device;
using beeline::hpe::DeviceMemory;
using beeline::hpe::PinnedMemory;
using beeline::hpe::Stream;

constexpr std::size_t chunk_bytes = std::size_t{2} << 20;

/// One direction: memory of both devices, their streams, and host memory to stage through.
struct Direction {
  Direction(Device source, Device target, std::size_t bytes)
      : from(source, bytes), to(target, bytes), out(source), in(target), pinned(std::max(bytes, 2 * chunk_bytes)),
        pageable(bytes), buffers(out, in, pinned.data(), chunk_bytes) {}
  DeviceMemory from, to;
  Stream out, in;
  PinnedMemory pinned;
  std::vector<std::byte> pageable;
  DoubleBuffer buffers;
};

/// A way to copy from one device to the other.
struct Scheme {
  std::string method;
  std::function<void(Direction&, std::size_t bytes)> copy;
};

std::vector<Scheme> schemes(bool is_direct) {
  std::vector<Scheme> all = {{is_direct ? "hpe/direct" : "hpe/staged", [](Direction& one, std::size_t bytes) {
                                beeline::hpe::copy(one.to.data(), one.from.data(), bytes);
                              }}};
  if (!is_direct) return all;  // the others do not depend on it
  all.push_back({"bare/pageable", [](Direction& one, std::size_t bytes) {
                   copy_through(one.out, one.in, one.pageable.data(), one.to.data(), one.from.data(), bytes);
                 }});
  all.push_back({"bare/pinned", [](Direction& one, std::size_t bytes) {
                   copy_through(one.out, one.in, one.pinned.data(), one.to.data(), one.from.data(), bytes);
                 }});
  all.push_back({"bare/double_buffered",
                 [](Direction& one, std::size_t bytes) { one.buffers.copy(one.to.data(), one.from.data(), bytes); }});
  return all;
}

bool is_right(const Scheme& scheme, Direction& one, std::size_t bytes) {
  static unsigned char seed = 0;
  std::vector<std::byte> data(bytes, static_cast<std::byte>(++seed)), back(bytes);
  beeline::hpe::copy(one.from.data(), data.data(), bytes);
  scheme.copy(one, bytes);
  beeline::hpe::copy(back.data(), one.to.data(), bytes);
  return back == data;
}

/// GB/s of each direction; with two directions a thread copies in each at the same time.
void measure(const Scheme& scheme, std::deque<Direction>& directions, std::size_t bytes) {
  const Samples times = time_of([&](int count) {
    std::vector<std::thread> others;
    const auto copy_all = [&, count](Direction& one) {
      for (int i = 0; i < count; ++i) scheme.copy(one, bytes);
    };
    for (std::size_t index = 1; index < directions.size(); ++index)
      others.emplace_back(copy_all, std::ref(directions[index]));
    copy_all(directions.front());
    for (std::thread& other : others) other.join();
  });
  Samples rates{{}, times.operations};
  for (const double us : times.values) rates.values.push_back(static_cast<double>(bytes) / us / 1e3);
  bool verified = true;
  for (Direction& one : directions) verified = verified && is_right(scheme, one, bytes);
  const bool is_two_way = directions.size() == 2;
  print({is_two_way ? "hpe_two_way" : "hpe_one_way", scheme.method, "GB/s", bytes}, rates, verified);
}

}  // namespace

void measure_inter_device(const std::vector<std::size_t>& sizes) {
  const std::vector<Device> devices = Device::all(2);
  if (devices.size() < 2) {
    for (const char* operation : {"hpe_one_way", "hpe_two_way"})
      print_lacking({operation, "hpe/direct", "GB/s"}, "this machine has one GPU");
    return;
  }
  const bool is_direct = devices[0].reaches(devices[1]);
  std::deque<Direction> directions;
  for (const std::size_t first : {0, 1}) {
    directions.emplace_back(devices[first], devices[1 - first], sizes.back());
    for (const Scheme& scheme : schemes(is_direct))
      for (const std::size_t bytes : sizes) measure(scheme, directions, bytes);
  }
}

}  // namespace beeline::bench::hpe
