// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>

#include "beeline/memory/address_map.hpp"

namespace beeline {

namespace {

const void* at(std::uintptr_t address) { return reinterpret_cast<const void*>(address); }

constexpr ChunkTable three_ranks{
    .base = 0x10000, .bytes = 10 * 4096 + 5, .chunk_pages = 2, .owner_count = 3, .owners = {4, 0, 7}};

TEST(ChunkTable, ChunksAreDealtOutInTurn) {
  EXPECT_EQ(6u, three_ranks.chunk_count());
  const std::uint32_t expected[] = {4, 0, 7, 4, 0, 7};
  for (std::uint32_t chunk = 0; chunk < 6; ++chunk) {
    const std::uint64_t first = chunk * three_ranks.chunk_bytes();
    EXPECT_EQ(expected[chunk], three_ranks.owner_at(first));
    EXPECT_EQ(expected[chunk], three_ranks.owner_of(at(0x10000 + first)));
    if (chunk < 5) {
      EXPECT_EQ(expected[chunk], three_ranks.owner_at(first + three_ranks.chunk_bytes() - 1));
    }
  }
}

TEST(ChunkTable, NobodyOwnsWhatLiesOutside) {
  EXPECT_EQ(no_peer, three_ranks.owner_of(at(0x10000 - 1)));
  EXPECT_EQ(7u, three_ranks.owner_of(at(0x10000 + 10 * 4096 + 4)));
  EXPECT_EQ(no_peer, three_ranks.owner_of(at(0x10000 + 10 * 4096 + 5)));
  EXPECT_EQ(no_peer, three_ranks.owner_of(nullptr));
}

TEST(ChunkTable, OffsetsBeyondFourGibibytes) {
  ChunkTable large = three_ranks;
  large.bytes = std::uint64_t{1} << 41;
  large.chunk_pages = 1u << 20;  // 4 GiB
  EXPECT_EQ(512u, large.chunk_count());
  for (std::uint64_t chunk : {0ul, 1ul, 2ul, 100ul, 511ul}) {
    EXPECT_EQ(large.owners[chunk % 3], large.owner_at(chunk << 32));
    EXPECT_EQ(large.owners[chunk % 3], large.owner_at((chunk << 32) + 0xffffffff));
  }
}

class AddressMaps : public ::testing::Test {
 protected:
  static constexpr std::uintptr_t range = 0x400000000000, slot = std::uintptr_t{1} << 33, place = slot / 32;
  std::unique_ptr<AddressTable> table_ = std::make_unique<AddressTable>();
  AddressMap map_{reinterpret_cast<std::byte*>(range), 33, 5, table_.get()};
};

TEST_F(AddressMaps, SlotsComeFirst) {
  for (std::uint32_t rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(rank, map_.owner_of(at(range + rank * slot)));
    EXPECT_EQ(rank, map_.owner_of(at(range + (rank + 1) * slot - 1)));
  }
  EXPECT_EQ(no_peer, map_.owner_of(at(range - 1)));
  EXPECT_EQ(no_peer, map_.owner_of(at(range + 5 * slot)));
  EXPECT_EQ(no_peer, map_.owner_of(nullptr));
}

TEST_F(AddressMaps, ArraysOfSeveralPlaces) {
  const std::uintptr_t first = range + 5 * slot;
  table_->arrays[250] = {
      .base = first + 250 * place, .bytes = 6 * place, .chunk_pages = 1u << 15, .owner_count = 2, .owners = {3, 1}};
  for (std::uint32_t taken = 250; taken < 256; ++taken) table_->array_at[taken] = 251;
  EXPECT_EQ(no_peer, map_.owner_of(at(first + 250 * place - 1)));
  EXPECT_EQ(3u, map_.owner_of(at(first + 250 * place)));
  EXPECT_EQ(1u, map_.owner_of(at(first + 250 * place + (1u << 27))));
  EXPECT_EQ(&table_->arrays[250], map_.array_of(at(first + 256 * place - 1)));
  EXPECT_EQ(no_peer, map_.owner_of(at(first + 256 * place)));  // behind the last place
}

TEST_F(AddressMaps, IntervalsAreSearched) {
  for (std::uint32_t i = 0; i < 7; ++i) table_->intervals[i] = {1000 + 100 * i, 50, i, 0};
  for (const std::uint32_t count : {0u, 1u, 2u, 6u, 7u}) {
    table_->interval_count = count;
    for (std::uint32_t i = 0; i < 7; ++i) {
      const std::uint32_t expected = i < count ? i : no_peer;
      EXPECT_EQ(expected, map_.owner_of(at(1000 + 100 * i)));
      EXPECT_EQ(expected, map_.owner_of(at(1049 + 100 * i)));
      EXPECT_EQ(no_peer, map_.owner_of(at(1050 + 100 * i)));
      EXPECT_EQ(no_peer, map_.owner_of(at(999 + 100 * i)));
    }
  }
}

}  // namespace

}  // namespace beeline
