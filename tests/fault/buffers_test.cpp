// SPDX-License-Identifier: Apache-2.0
// Buffers of transfers between nodes are bounded. Measured by a process's memory, so not under AddressSanitizer.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "beeline/beeline.hpp"
#include "tests/support/check.hpp"
#include "tests/support/split_nodes.hpp"

namespace beeline_test {

namespace {

using namespace beeline;
using namespace std::chrono_literals;

/// The largest amount of memory that this process has used.
std::size_t peak_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

constexpr std::size_t little = std::size_t{48} << 20;

/// Strided rows are packed in buffers of bounded size at either end.
TEST(Buffers, OfStridedTransfersAreBounded) {
  SKIP_WITHOUT_UCX();
  Config config = split_config(60'000'000'000);
  config.heap_bytes = std::size_t{512} << 20;
  expect_all_passed(run_ranks(
      WorldKind::processes, 2,
      [](World& world) {
        constexpr std::size_t rows = 200'000, row = 64;
        const StridedShape apart{
            .count = rows, .block_length = row, .destination_stride = 2 * row, .source_stride = row};
        const SymmetricArray<std::uint64_t> table(world, 2 * rows * row);
        std::vector<std::uint64_t> mine(rows * row, 7);
        std::fill_n(table.data(), 2 * rows * row, 1);  // the whole table is allocated before the measurement
        world.barrier();
        const std::size_t before = peak_bytes();
        if (world.rank() == 0) {
          BEELINE_CHECK(put_strided(Thread{}, world.host_context(), table.data(), mine.data(), apart, 1) == Status::ok);
          const StridedShape back{
              .count = rows, .block_length = row, .destination_stride = row, .source_stride = 2 * row};
          BEELINE_CHECK(quiet(Thread{}, world.host_context()) == Status::ok);
          std::fill(mine.begin(), mine.end(), 0);
          BEELINE_CHECK(get_strided(Thread{}, world.host_context(), mine.data(), table.data(), back, 1) == Status::ok);
          BEELINE_CHECK(std::all_of(mine.begin(), mine.end(), [](std::uint64_t word) { return word == 7; }));
        } else {
          std::this_thread::sleep_for(200ms);
        }
        world.barrier();
        BEELINE_CHECK(peak_bytes() - before < little);  // 100 MB were moved, twice
      },
      config));
}

/// A receiver does not fetch a long message for memory that was freed.
TEST(Buffers, DoNotTakeALongMessageThatIsRefused) {
  SKIP_WITHOUT_UCX();
  expect_all_passed(run_ranks(
      WorldKind::processes, 2,
      [](World& world) {
        constexpr std::size_t bytes = std::size_t{256} << 20;
        const Segment segment = world.create_segment(MemoryKind::host, bytes);
        auto* const own = segment.parts[static_cast<std::size_t>(world.rank())].address;
        world.destroy_segment(segment.id);
        const std::vector<std::byte> mine(world.rank() == 0 ? bytes : 0, std::byte{7});
        const std::size_t before = peak_bytes();
        try {
          world.barrier();
          if (world.rank() == 0)
            put(Thread{}, world.host_context(), reinterpret_cast<std::byte*>(own), mine.data(), bytes, 1);
          world.barrier();
          throw CheckFailure("no error");
        } catch (const Error& error) {
          BEELINE_CHECK_CONTAINS(error.what(), "rank 1's engine refused: put of 1 x 268435456 bytes");
        }
        BEELINE_CHECK(peak_bytes() - before < little);
      },
      split_config()));
}

}  // namespace

}  // namespace beeline_test
