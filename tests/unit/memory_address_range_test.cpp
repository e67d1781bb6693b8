// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

#include "beeline/core/error.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "memory/address_range.hpp"
#include "memory/node_memory.hpp"
#include "tests/support/errors.hpp"

namespace beeline {

namespace {

constexpr SlotLayout layout{32};
constexpr std::int64_t deadline_ns = 20'000'000'000;

TEST(AddressRange, OwnersFollowFromAddresses) {
  AddressRange range;
  ASSERT_TRUE(range.reserve(nullptr, layout, 3, {false, false, false}));
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(rank, range.owner_of(range.slot(rank)));
    EXPECT_EQ(rank, range.owner_of(range.slot(rank) + layout.slot_bytes() - 1));
  }
  EXPECT_EQ(-1, range.owner_of(range.base() - 1));
  EXPECT_EQ(-1, range.owner_of(range.base() + 3 * layout.slot_bytes()));
  EXPECT_EQ(-1, range.owner_of(nullptr));
}

constexpr std::size_t gibibyte = std::size_t{1} << 30;

/// One to eight ranks have heaps of all the memory of a card of 141 GB with the shift that is the default.
TEST(SlotShift, FollowsLargeHeaps) {
  for (const int ranks : {1, 2, 8, 64}) {
    EXPECT_EQ(38u, fitted_slot_shift({38, 64 * gibibyte, gibibyte}, ranks));
    EXPECT_EQ(39u, fitted_slot_shift({38, 64 * gibibyte + 1, gibibyte}, ranks));
    EXPECT_EQ(40u, fitted_slot_shift({38, 141'000'000'000, gibibyte}, ranks));
    EXPECT_EQ(39u, fitted_slot_shift({38, gibibyte, 32 * gibibyte + 1}, ranks)) << "a pinned heap";
    EXPECT_EQ(40u, fitted_slot_shift({40, gibibyte, gibibyte}, ranks));
    EXPECT_EQ(33u, fitted_slot_shift({32, gibibyte + 1, 4096}, ranks));
    EXPECT_EQ(40u, fitted_slot_shift({32, SIZE_MAX, 4096}, ranks)) << "the largest, which NodeMemory refuses";
  }
  EXPECT_EQ(36u, fitted_slot_shift({38, gibibyte, gibibyte}, 1024));
  EXPECT_EQ(36u, fitted_slot_shift({32, 64 * gibibyte, gibibyte}, 1024));
}

TEST(SlotShift, OfTooLargeHeapsIsRefused) {
  const auto refused = [](const MemorySizes& sizes, std::initializer_list<std::string_view> words) {
    const std::unique_ptr<Bootstrap> bootstrap = make_single_bootstrap();
    beeline_test::check_error(Status::invalid_argument, words,
                              [&] { const NodeMemory memory(*bootstrap, 1, {MemoryMember{}}, sizes, deadline_ns); });
  };
  refused({40, 256 * gibibyte + 1, 4096},
          {"a symmetric heap of 274877906945 bytes", "a quarter of a slot of 2^40 bytes, which is 274877906944 bytes",
           "lower BEELINE_HEAP_BYTES"});
  refused({36, 4096, 8 * gibibyte + 1}, {"a pinned heap of 8589934593 bytes", "an eighth of a slot of 2^36 bytes",
                                         "lower BEELINE_PINNED_HEAP_BYTES, or start fewer ranks"});
}

/// A user that takes its lock again at once does not keep out a thread that unmaps; nothing is unmapped while it works.
TEST(AddressRange, NothingIsUnmappedInUse) {
  AddressRange range;
  ASSERT_TRUE(range.reserve(nullptr, layout, 1, {false}));
  std::atomic<bool> stops{false}, is_mapped{true};
  std::atomic<int> rounds{0}, faults{0};
  const FileDescriptor memory = range.create_host(range.slot(0), 4096);
  std::thread user([&] {
    MemoryUser in_use(range.users());
    while (!stops) {
      const std::lock_guard lock(in_use);
      const bool before = is_mapped;
      for (int i = 0; i < 1000; ++i) faults += is_mapped == before ? 0 : 1;
      ++rounds;
    }
  });
  for (int i = 0; i < 100; ++i) {
    const std::lock_guard unmaps(range.users());
    is_mapped = !is_mapped;
  }
  range.unmap(range.slot(0), deadline_ns);
  while (rounds == 0) std::this_thread::yield();
  stops = true;
  user.join();
  EXPECT_EQ(0, faults);
}

TEST(AddressRange, NothingIsUnmappedWhileItIsHeld) {
  AddressRange range;
  ASSERT_TRUE(range.reserve(nullptr, layout, 1, {false}));
  const FileDescriptor memory = range.create_host(range.slot(0), 4096);
  ASSERT_TRUE(range.users().try_hold());
  try {
    range.unmap(range.slot(0), 1'000'000);
    ADD_FAILURE() << "unmapped what is held";
  } catch (const Error& error) {
    EXPECT_EQ(Status::deadline, error.code()) << error.what();
  }
  EXPECT_EQ(4096u, range.piece_at(range.slot(0)).size());
  ASSERT_TRUE(range.users().try_hold()) << "the one that has given up keeps nobody out";
  std::thread releasing([&] {
    while (range.users().try_hold()) range.users().release();  // until the other thread is waiting to unmap
    for (int i = 0; i < 2; ++i) range.users().release();
  });
  range.unmap(range.slot(0), deadline_ns);
  releasing.join();
  EXPECT_TRUE(range.piece_at(range.slot(0)).empty());
}

TEST(AddressRange, ATakenPlaceIsRefusedAndLeftAlone) {
  AddressRange first, second;
  ASSERT_TRUE(first.reserve(nullptr, layout, 1, {false}));
  EXPECT_TRUE(first.reserve(first.base(), layout, 1, {false}));
  const FileDescriptor memory = first.create_host(first.slot(0), 4096);
  *first.slot(0) = std::byte{42};
  EXPECT_FALSE(second.reserve(first.base(), layout, 1, {false}));
  EXPECT_EQ(nullptr, second.base());
  EXPECT_EQ(std::byte{42}, *first.slot(0));
}

TEST(AddressRange, DescriptorsMapTheSameMemory) {
  AddressRange one, other;
  ASSERT_TRUE(one.reserve(nullptr, layout, 2, {false, false}));
  ASSERT_TRUE(other.reserve(nullptr, layout, 2, {false, false}));
  other.map_host(other.slot(1), 8192, one.create_host(one.slot(1), 8192));
  std::memset(one.slot(1), 7, 8192);
  EXPECT_EQ(std::byte{7}, other.slot(1)[8191]);
  other.unmap(other.slot(1), deadline_ns);
  other.unmap(other.slot(1), deadline_ns);  // another thread's rank may already have done this
  const FileDescriptor fresh = other.create_host(other.slot(1), 8192);
  EXPECT_EQ(std::byte{0}, other.slot(1)[8191]);
  EXPECT_EQ(std::byte{7}, one.slot(1)[8191]);
}

TEST(AddressRange, AForkedChildHasACopyOfItsOwn) {
  AddressRange one, other;
  ASSERT_TRUE(one.reserve(nullptr, layout, 2, {false, false}));
  ASSERT_TRUE(other.reserve(nullptr, layout, 2, {false, false}));
  other.map_host(other.slot(1), 8192, one.create_host(one.slot(1), 8192));
  *one.slot(1) = std::byte{7};
  if (const pid_t child = ::fork(); child == 0) {
    const bool reads = *one.slot(1) == std::byte{7} && *other.slot(1) == std::byte{7};
    *one.slot(1) = std::byte{8};
    ::_exit(reads && *other.slot(1) == std::byte{7} ? 0 : 1);  // each mapping is a copy
  } else {
    int status = -1;
    ASSERT_EQ(child, ::waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
  }
  EXPECT_EQ(std::byte{7}, *one.slot(1));
}

TEST(AddressRange, WhatIsNotHostMemoryIsOutOfReach) {
  AddressRange range;
  ASSERT_TRUE(range.reserve(nullptr, layout, 2, {false, false}));
  range.set_access({{}, {}});  // no GPU of this process
  const FileDescriptor memory = range.create_host(range.slot(0), 8192);
  for (const std::ptrdiff_t offset : {0, 4096, 8191}) EXPECT_FALSE(range.is_gpu_memory(range.slot(0) + offset));
  EXPECT_TRUE(range.is_gpu_memory(range.slot(0) + 8192));
  EXPECT_TRUE(range.is_gpu_memory(range.slot(1)));
  EXPECT_FALSE(range.is_gpu_memory(range.base() - 1));
  EXPECT_FALSE(range.is_gpu_memory(&range));
  range.map_device(range.slot(1), 4096, memory);  // the GPU cannot be reached; no error
  EXPECT_TRUE(range.is_gpu_memory(range.slot(1)));
}

TEST(AddressRange, OneForEachWorldOfAProcess) {
  const auto mine = AddressRange::of_world(1001), again = AddressRange::of_world(1001),
             other = AddressRange::of_world(1002);
  EXPECT_EQ(mine, again);
  EXPECT_NE(mine, other);
}

}  // namespace

}  // namespace beeline
