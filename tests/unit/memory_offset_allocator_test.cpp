// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>

#include "beeline/core/error.hpp"
#include "memory/memory_aliases.hpp"
#include "memory/offset_allocator.hpp"
#include "tests/support/random.hpp"

namespace beeline {

namespace {

Status code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return Status::ok;
}

TEST(MemoryAliases, StandForMemoryElsewhere) {
  constexpr SlotLayout slot{min_slot_shift};
  constexpr std::size_t page = std::size_t{1} << ChunkTable::page_shift;
  MemoryAliases aliases(slot, true);
  std::byte memory[100];
  const std::uint64_t offset = aliases.open(200, {1, memory, sizeof memory});
  EXPECT_TRUE(MemoryAliases::may_hold(slot, offset));
  EXPECT_FALSE(MemoryAliases::may_hold(slot, slot.half() - 1));
  EXPECT_FALSE(MemoryAliases::may_hold(slot, slot.host_area_offset()));
  EXPECT_EQ(memory + 99, aliases.find(1, offset + 99));
  EXPECT_EQ(nullptr, aliases.find(1, offset + 100)) << "another rank has more";
  EXPECT_EQ(nullptr, aliases.find(0, offset)) << "not of this process";
  EXPECT_EQ(nullptr, aliases.find(1, offset - 1));
  const ChunkTable array{0x7000'0000, 4 * page + 8, 1, 2, {5, 2}};  // chunks 0, 2 and 4 belong to rank 5
  aliases.open(array);
  const auto at = [&](std::size_t byte) { return reinterpret_cast<std::byte*>(array.base) + byte; };
  for (std::size_t byte = 0; byte < array.bytes; byte += 1000)
    EXPECT_EQ(at(byte), aliases.find(array.owner_at(byte), aliases.offset_in_array(at(byte))));
  EXPECT_EQ(aliases.offset_in_array(at(page)), aliases.offset_in_array(at(0))) << "in different slots";
  EXPECT_EQ(nullptr, aliases.find(2, aliases.offset_in_array(at(0)) + 2 * page)) << "rank 2 has two chunks";
  EXPECT_EQ(nullptr, aliases.find(3, aliases.offset_in_array(at(0))));
  EXPECT_EQ(0u, aliases.offset_in_array(at(array.bytes)));
  aliases.close(offset);
  EXPECT_EQ(nullptr, aliases.find(1, offset));
  aliases.close_array(array.base);
  EXPECT_EQ(0u, aliases.offset_in_array(at(0)));
  EXPECT_EQ(offset, aliases.open(1, {})) << "offsets are used again";
}

TEST(OffsetAllocator, HandsOutFromTheFarEnd) {
  OffsetAllocator allocator(4096 + 100, 256);
  EXPECT_EQ(3840u, allocator.allocate_high(300 - 200, SIZE_MAX));
  EXPECT_EQ(3584u, allocator.allocate_high(256, SIZE_MAX));
  EXPECT_EQ(0u, allocator.allocate(256));
  EXPECT_EQ(1024u, allocator.allocate_high(512, 1279));  // below the given limit, and aligned
  EXPECT_EQ(256u, allocator.allocate(700));              // fits below that piece
  EXPECT_EQ(Status::no_resource, code_of([&] { static_cast<void>(allocator.allocate_high(256, 1000)); }));
  EXPECT_EQ(Status::no_resource, code_of([&] { static_cast<void>(allocator.allocate_high(4096, SIZE_MAX)); }));
  for (const std::size_t offset : {3840, 1024, 0, 3584, 256}) allocator.free(static_cast<std::size_t>(offset));
  EXPECT_EQ(0u, allocator.allocate(4096));  // all pieces are merged again
}

TEST(OffsetAllocator, HandsOutAlignedDisjointPieces) {
  constexpr std::size_t capacity = 1 << 16, alignment = 256;
  OffsetAllocator allocator(capacity, alignment);
  beeline_test::Random random("offset allocator");
  std::map<std::size_t, std::size_t> held;  // offset to rounded bytes
  std::size_t used = 0;
  for (int step = 0; step < 3000; ++step) {
    if (held.empty() || random.coin()) {
      const std::size_t bytes = random.below(std::size_t{5000}),
                        rounded = (std::max<std::size_t>(bytes, 1) + 255) / 256 * 256;
      try {
        const std::size_t offset = allocator.allocate(bytes);
        EXPECT_EQ(0u, offset % alignment);
        EXPECT_LE(offset + rounded, capacity);
        const auto next = held.lower_bound(offset);
        EXPECT_TRUE(next == held.end() || offset + rounded <= next->first);
        EXPECT_TRUE(next == held.begin() || std::prev(next)->first + std::prev(next)->second <= offset);
        held[offset] = rounded;
        used += rounded;
      } catch (const Error& error) {
        EXPECT_EQ(Status::no_resource, error.code());
      }
    } else {
      auto victim = std::next(held.begin(), static_cast<std::ptrdiff_t>(random.below(held.size())));
      EXPECT_TRUE(allocator.holds(victim->first));
      allocator.free(victim->first);
      EXPECT_FALSE(allocator.holds(victim->first));
      used -= victim->second;
      held.erase(victim);
    }
    ASSERT_EQ(capacity - used, allocator.free_bytes()) << "BEELINE_TEST_SEED=" << beeline_test::seed();
  }
  for (const auto& [offset, bytes] : held) allocator.free(offset);
  EXPECT_EQ(0u, allocator.allocate(capacity)) << "free pieces were not joined";
}

TEST(OffsetAllocator, SameCallsGiveSameOffsets) {
  OffsetAllocator first(1 << 20, 64), second(1 << 20, 64);
  for (const std::size_t bytes : {100u, 7u, 4096u, 0u}) EXPECT_EQ(first.allocate(bytes), second.allocate(bytes));
}

TEST(OffsetAllocator, RefusesWhatDoesNotFit) {
  OffsetAllocator allocator(1024, 256);
  EXPECT_EQ(Status::no_resource, code_of([&] { static_cast<void>(allocator.allocate(1025)); }));
  EXPECT_EQ(Status::no_resource, code_of([&] { static_cast<void>(allocator.allocate(~std::size_t{0})); }));
  EXPECT_EQ(Status::no_resource, code_of([&] { static_cast<void>(allocator.allocate(~std::size_t{0} - 255)); }));
  static_cast<void>(allocator.allocate(1024));
  EXPECT_EQ(Status::no_resource, code_of([&] { static_cast<void>(allocator.allocate(0)); }));
  OffsetAllocator none(0, 256);
  EXPECT_EQ(Status::no_resource, code_of([&] { static_cast<void>(none.allocate(0)); }));
}

TEST(OffsetAllocator, RefusesToFreeWhatItDoesNotHold) {
  OffsetAllocator allocator(1024, 256);
  const std::size_t offset = allocator.allocate(512);
  EXPECT_EQ(Status::invalid_argument, code_of([&] { allocator.free(offset + 256); }));
  allocator.free(offset);
  EXPECT_EQ(Status::invalid_argument, code_of([&] { allocator.free(offset); }));
}

}  // namespace

}  // namespace beeline
