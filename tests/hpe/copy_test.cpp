// SPDX-License-Identifier: Apache-2.0
#include "beeline/hpe/copy.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/hpe/memory_kinds.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test {

namespace {

namespace hpe = beeline::hpe;
using namespace hpe;
using beeline::Status;

std::vector<std::byte> read(const std::byte* from, std::size_t bytes) {
  std::vector<std::byte> there(bytes);
  hpe::copy(there.data(), from, bytes);
  return there;
}

/// Lengths around the limits of copies: of words, of what CUDA reads at once, of a staging buffer.
constexpr std::size_t lengths[] = {1, 7, 4096, 65536, 65537, (std::size_t{2} << 20) + 5};
/// More than all staging buffers.
constexpr std::size_t longest = (std::size_t{9} << 20) + 1, room = std::size_t{10} << 20;

TEST(Copies, EachPairOfKindsBlocking) {
  const std::vector<AnyMemory> sources = memory_of_each_kind(room), targets = memory_of_each_kind(room);
  unsigned seed = 0;
  for (const AnyMemory& source : sources)
    for (const AnyMemory& target : targets)
      for (const std::size_t bytes : lengths) {
        const std::vector<std::byte> data = test_bytes(bytes, ++seed);
        const std::size_t shift = seed % 5;  // misaligned, unlike at both ends
        hpe::copy(source.start + shift, data.data(), bytes);
        hpe::copy(target.start + 3, source.start + shift, bytes);
        ASSERT_EQ(read(target.start + 3, bytes), data) << source.kind << " to " << target.kind << ", " << bytes;
      }
}

TEST(Copies, LongBetweenDevices) {
  const DeviceMemory source(Device::all(2).front(), longest), target(Device::all(2).back(), longest);
  const std::vector<std::byte> data = test_bytes(longest, 7);
  hpe::copy(source.data(), data.data(), longest);
  hpe::copy(target.data(), source.data(), longest);
  EXPECT_EQ(read(target.data(), longest), data);
}

TEST(Copies, EachPairOfKindsOnStreams) {
  const std::vector<AnyMemory> sources = memory_of_each_kind(room), targets = memory_of_each_kind(room);
  unsigned seed = 100;
  std::vector<Device> devices = Device::all(2);
  devices.push_back(Device::host(2));
  for (const Device device : devices) {
    Stream stream(device);
    for (const AnyMemory& source : sources)
      for (const AnyMemory& target : targets) {
        const std::size_t bytes = lengths[seed % std::size(lengths)];
        const std::vector<std::byte> data = test_bytes(bytes, ++seed);
        hpe::copy(source.start, data.data(), bytes, stream);
        hpe::copy(target.start + 1, source.start, bytes, stream);
        stream.synchronize();
        ASSERT_EQ(read(target.start + 1, bytes), data)
            << source.kind << " to " << target.kind << " on " << device.name() << ", " << bytes;
      }
  }
}

TEST(Copies, NothingToDo) {
  std::byte here[16] = {};
  hpe::copy(here, here + 8, 0);
  hpe::copy(nullptr, nullptr, 0);
  hpe::copy(here, here, sizeof here);
}

TEST(Copies, OverlapIsRefused) {
  const DeviceMemory memory(Device::all().front(), 100);
  check_error(Status::invalid_argument, {"overlap", "60 bytes"},
              [&] { hpe::copy(memory.data(), memory.data() + 40, 60); });
  Stream stream(Device::all().front());
  check_error(Status::invalid_argument, {"overlap"}, [&] { hpe::copy(memory.data() + 40, memory.data(), 60, stream); });
  hpe::copy(memory.data() + 40, memory.data(), 40);  // they touch
}

TEST(Copies, PointersOfNobodyAreRefused) {
  std::byte here[64] = {};
  auto* const nobody = reinterpret_cast<std::byte*>(0x10);
  check_error(Status::invalid_argument, {"belongs to nobody", "0x10"}, [&] { hpe::copy(nobody, here, 8); });
  check_error(Status::invalid_argument, {"belongs to nobody"}, [&] { hpe::copy(here, nobody, 8); });
  check_error(Status::invalid_argument, {"null address"}, [&] { hpe::copy(nullptr, here, 8); });
  check_error(Status::invalid_argument, {"belongs to nobody"}, [&] { static_cast<void>(owner_of(nobody)); });
}

TEST(Copies, FreedMemoryBelongsToNobody) {
  std::byte here[64] = {};
  std::byte* freed = nullptr;
  {
    const DeviceMemory memory(Device::all().front(), 1 << 20);
    freed = memory.data();
  }
  check_error(Status::invalid_argument, {"belongs to nobody"}, [&] { hpe::copy(freed, here, sizeof here); });
}

TEST(Copies, RangesBeyondAnAllocationAreRefused) {
  const DeviceMemory memory(Device::all().front(), 100);
  const PinnedMemory pinned(200);
  std::vector<std::byte> all(100'000);
  std::byte* const here = all.data();
  check_error(Status::invalid_argument, {"destination", "goes 1 bytes beyond its allocation of 100 bytes"},
              [&] { hpe::copy(memory.data() + 91, here, 10); });
  check_error(Status::invalid_argument, {"source", "goes 56 bytes beyond its allocation of 200 bytes"},
              [&] { hpe::copy(here, pinned.data(), 256); });
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  auto* const pages =
      static_cast<std::byte*>(::mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ::munmap(pages + page, page);  // in the middle
  check_error(Status::invalid_argument, {"has pages that are not mapped"},
              [&] { hpe::copy(here, pages, 2 * page + 8); });
  ::munmap(pages, 3 * page);
}

TEST(Copies, OwnersAreFoundFromPointers) {
  for (const Device device : {Device::host(0), Device::host(1), Device::all().front()}) {
    const DeviceMemory memory(device, 1000);
    const Owner owner = owner_of(memory.data() + 999);
    EXPECT_EQ(owner.memory, Memory::device);
    EXPECT_EQ(owner.device, device);
    EXPECT_EQ(owner.start, memory.data());
    EXPECT_EQ(owner.bytes, 1000u);
  }
  const PinnedMemory pinned(10);
  EXPECT_EQ(owner_of(pinned.data()).memory, Memory::pinned);
  const int on_stack = 0;
  EXPECT_EQ(owner_of(&on_stack).memory, Memory::pageable);
}

/// Owners stay right while other threads allocate and free.
TEST(Copies, OwnersWhileOthersAllocate) {
  const DeviceMemory kept(Device::host(3), 4096);
  std::atomic<bool> ends{false};
  std::vector<std::thread> others;
  for (int index = 0; index < 2; ++index)
    others.emplace_back([&ends, index] {
      std::vector<DeviceMemory> some;
      while (!ends) {
        some.emplace_back(Device::host(index), 4096);
        if (some.size() == 40) some.clear();
      }
    });
  for (int i = 0; i < 20000; ++i) {
    const Owner owner = owner_of(kept.data() + i % 4096);
    ASSERT_EQ(owner.device, Device::host(3));
    ASSERT_EQ(owner.start, kept.data());
  }
  ends = true;
  for (std::thread& other : others) other.join();
}

/// A blocking copy ends at its deadline, and later copies take no harm.
TEST(Copies, HaveDeadlines) {
  const bool has_gpus = !Device::gpus().empty();
  if (!has_gpus && Device::host(6).reaches(Device::host(7))) GTEST_SKIP() << "such copies have no waits";
  if (Device::gpus().size() == 1) GTEST_SKIP() << "a copy within one GPU may end before it is waited for";
  const Device source = has_gpus ? Device::gpus().front() : Device::host(6);
  const Device target = has_gpus ? Device::gpus().back() : Device::host(7);
  constexpr int copies = 5;
  static std::vector<DeviceMemory> from, to;  // kept: a copy goes on after its deadline
  int refused = 0;
  for (int i = 0; i < copies; ++i) try {
      from.emplace_back(source, longest), to.emplace_back(target, longest);
      hpe::copy(to.back().data(), from.back().data(), longest, {.deadline = std::chrono::nanoseconds(0)});
    } catch (const beeline::Error& error) {
      EXPECT_EQ(error.code(), Status::deadline);
      ++refused;
    }
  EXPECT_GT(refused, 0);
  const std::vector<std::byte> data = test_bytes(longest, 9);
  const DeviceMemory later_from(source, longest), later_to(target, longest);
  hpe::copy(later_from.data(), data.data(), longest);
  hpe::copy(later_to.data(), later_from.data(), longest);
  EXPECT_EQ(read(later_to.data(), longest), data);
}

TEST(Copies, ThreadsShareADevice) {
  constexpr int threads = 16, rounds = 20;
  constexpr std::size_t bytes = 100'000;
  const Device device = Device::all().front();
  std::atomic<int> wrong{0};
  std::vector<std::thread> all;
  for (int index = 0; index < threads; ++index)
    all.emplace_back([&, index] {
      const DeviceMemory memory(device, bytes), second(Device::all(2).back(), bytes);
      for (int round = 0; round < rounds; ++round) {
        const std::vector<std::byte> data = test_bytes(bytes, static_cast<unsigned>(index * rounds + round));
        hpe::copy(memory.data(), data.data(), bytes);
        hpe::copy(second.data(), memory.data(), bytes);
        if (read(second.data(), bytes) != data) ++wrong;
      }
    });
  for (std::thread& each : all) each.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace

}  // namespace beeline_test
