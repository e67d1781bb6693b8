// SPDX-License-Identifier: Apache-2.0
// Transfers whose sizes do not fit 31 or 32 bits.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "beeline/beeline.hpp"
#include "tests/support/check.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test::large_transfer_test {

namespace {

using namespace beeline;

constexpr std::size_t gibibyte = std::size_t{1} << 30;

/// Bytes that programs can still allocate without swapping; 0 if the system does not say.
std::size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  for (std::size_t kibibytes = 0; file >> name >> kibibytes >> unit;)
    if (name == "MemAvailable:") return kibibytes << 10;
  return 0;
}

struct PutBytes {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::byte* to, const std::byte* from,
                                      std::size_t bytes) const {
    put(grid.block(), ctx, to, from, bytes, (ctx.rank + 1) % ctx.size);
    static_cast<void>(quiet(grid.block(), ctx));
  }
};

/// Visits marks in the first and last bytes, and beside the offsets at which a size of 31 or 32 bits would wrap.
template <class Visit>
void for_each_mark(std::size_t bytes, Visit visit) {
  for (const std::size_t place :
       {std::size_t{0}, 2 * gibibyte - 1, 2 * gibibyte, 4 * gibibyte - 1, 4 * gibibyte, bytes - 1})
    if (place < bytes) visit(place, static_cast<std::byte>(place % 251 + 1));
}

/// Rank 0 moves `bytes` to rank 1's part of the segment; rank 1 checks and clears the marks. Marks are written and read
/// by copies, because the memory may be a GPU's.
void move_and_check(World& world, const Segment& segment, std::byte* from, std::size_t bytes, bool by_kernel) {
  std::byte* there = segment.parts[1].address;
  const auto write = [&](std::byte* place, std::byte value) { world.copy(place, &value, 1); };
  const auto read = [&](const std::byte* place) {
    std::byte value{};
    world.copy(&value, place, 1);
    return value;
  };
  if (world.rank() == 0) {
    for_each_mark(bytes, [&](std::size_t place, std::byte mark) { write(from + place, mark); });
    if (by_kernel) {
      std::byte* here = there - (std::size_t{1} << world.config().slot_shift);  // a put takes this rank's address
      launch(world, {}, PutBytes{}, here, static_cast<const std::byte*>(from), bytes);
      world.synchronize();
    } else {
      world.copy(there, from, bytes);
    }
    for_each_mark(bytes, [&](std::size_t place, std::byte) { write(from + place, std::byte{0}); });
  }
  world.barrier();
  if (world.rank() == 1) {
    for_each_mark(bytes, [&](std::size_t place, std::byte mark) { BEELINE_CHECK(read(there + place) == mark); });
    BEELINE_CHECK(read(there + bytes) == std::byte{0});
    for_each_mark(bytes, [&](std::size_t place, std::byte) { write(there + place, std::byte{0}); });
  }
  world.barrier();
}

constexpr std::size_t most = 4 * gibibyte + 4099;

/// Transfers by a kernel's stores and by a copy, within GPU memory or between two GPUs.
TEST(LargeTransfer, BeyondTwoAndFourGibibytesOfGpuMemory) {
  std::string why;
  const int gpus = gpus_here(&why);
  if (gpus == 0) GTEST_SKIP() << "no GPU: " << why;
  expect_all_passed(run_ranks(
      WorldKind::threads, 2,
      [](World& world) {
        const bool sends = world.rank() == 0;
        const Segment& target = world.create_segment(MemoryKind::device, sends ? 0 : most + 1);
        const Segment& source = world.create_segment(MemoryKind::device, sends ? most : 0);
        world.synchronize();
        move_and_check(world, target, source.parts[0].address, most, true);
        move_and_check(world, target, source.parts[0].address, most, false);
        move_and_check(world, target, source.parts[0].address, 2 * gibibyte + 1, false);
        world.destroy_segment(source.id);
        world.destroy_segment(target.id);
      },
      test_config(), 100));
}

TEST(LargeTransfer, BeyondTwoAndFourGibibytes) {
  if (under_thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer's shadow memory would take several times the size";
  const char* shift = std::getenv("BEELINE_SLOT_SHIFT");
  if (shift != nullptr && std::atoi(shift) < 36) GTEST_SKIP() << "slots of 2^" << shift << " bytes hold no such heap";
  if (available_memory() < most + 2 * gibibyte)
    GTEST_SKIP() << "needs " << (most >> 30) + 2 << " GiB of available memory, there are "
                 << (available_memory() >> 30);
  Config config = test_config();
  config.device = "cpu";
  config.deadline_ns = 60'000'000'000;  // one rank touches gigabytes while the other waits
  expect_all_passed(run_ranks(
      WorldKind::threads, 2,
      [](World& world) {
        const bool sends = world.rank() == 0;
        const Segment& segment = world.create_segment(MemoryKind::host, sends ? 0 : most + 1);
        // Few pages are written, so that this takes little more than address space.
        const std::unique_ptr<std::byte, void (*)(void*)> source(
            static_cast<std::byte*>(sends ? std::calloc(most, 1) : nullptr), std::free);
        move_and_check(world, segment, source.get(), most, true);
        move_and_check(world, segment, source.get(), 2 * gibibyte + 1, false);
        world.destroy_segment(segment.id);
      },
      config, 100));
}

}  // namespace

}  // namespace beeline_test::large_transfer_test
