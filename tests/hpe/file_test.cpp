// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "beeline/hpe/files.hpp"
#include "beeline/hpe/object.hpp"
#include "beeline/runtime/file_descriptor.hpp"
#include "hpe/files/block_io.hpp"
#include "hpe/files/block_plan.hpp"
#include "hpe/files/open_file.hpp"
#include "tests/hpe/file_folder.hpp"
#include "tests/hpe/memory_kinds.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test::file_tests {

namespace {

using namespace beeline::hpe;

constexpr std::size_t mib = std::size_t{1} << 20;
/// Around the limits of pages, of blocks and of calls in flight.
constexpr std::size_t longest = under_thread_sanitizer ? mib + 1 : 9 * mib + 1, file_bytes = longest + 8192;
constexpr std::size_t lengths[] = {0, 1, 511, 4096, 4099, 262145, longest - 4109, longest};
constexpr std::uint64_t offsets[] = {0, 1, 4096, 4097 + 512};

/// ThreadSanitizer, which looks at each byte that is compared, takes a minute for all.
std::vector<FileOptions> all_ways() {
  if (under_thread_sanitizer) return {{.variant = FileVariant::automatic}, {.variant = FileVariant::double_buffered}};
  std::vector<FileOptions> ways;
  for (const FileAccess access : {FileAccess::automatic, FileAccess::direct, FileAccess::buffered})
    ways.push_back({.access = access});
  ways.push_back({.block_bytes = 10000, .blocks_in_flight = 7});
  for (const FileVariant variant : {FileVariant::user, FileVariant::pinned, FileVariant::double_buffered})
    ways.push_back({.variant = variant});
  return ways;
}

std::string words_of(const AnyMemory& memory, const FileOptions& way, std::size_t bytes) {
  return memory.kind + ", " + name(way.variant) + ", access " + std::to_string(static_cast<int>(way.access)) + ", " +
         std::to_string(bytes) + " bytes at " + std::to_string(way.offset);
}

std::vector<std::byte> part_of(const std::vector<std::byte>& all, std::size_t start, std::size_t bytes) {
  return {all.begin() + static_cast<std::ptrdiff_t>(start), all.begin() + static_cast<std::ptrdiff_t>(start + bytes)};
}

std::vector<std::byte> bytes_of(const std::byte* from, std::size_t bytes) {
  std::vector<std::byte> there(bytes);
  copy(there.data(), from, bytes);
  return there;
}

TEST(Files, ReadToEachKindOfMemory) {
  const FileFolder folder;
  const std::vector<std::byte> content = test_bytes(file_bytes, 1);
  make_file(folder / "file", content);
  const std::vector<std::byte> other = test_bytes(longest + 64, 2);
  unsigned round = 0;
  for (const AnyMemory& memory : memory_of_each_kind(longest + 64))
    for (FileOptions way : all_ways())
      for (const std::size_t bytes : lengths) {
        way.offset = offsets[++round % std::size(offsets)];
        const std::size_t shift = round % 3 == 0 ? 0 : round % 17;  // of the memory's alignment
        const std::size_t around = std::min<std::size_t>(bytes + 64, other.size());
        copy(memory.start, other.data(), around);
        ASSERT_EQ(read_file(folder / "file", memory.start + shift, bytes, way), bytes);
        const std::vector<std::byte> there = bytes_of(memory.start, around);
        ASSERT_EQ(part_of(there, shift, bytes), part_of(content, way.offset, bytes)) << words_of(memory, way, bytes);
        ASSERT_EQ(part_of(there, 0, shift), part_of(other, 0, shift)) << words_of(memory, way, bytes);
        ASSERT_EQ(part_of(there, shift + bytes, around - shift - bytes),
                  part_of(other, shift + bytes, around - shift - bytes))
            << words_of(memory, way, bytes);
      }
}

TEST(Files, WriteFromEachKindOfMemoryKeepsTheRest) {
  const FileFolder folder;
  const std::vector<std::byte> before = test_bytes(longest / 4, 3), data = test_bytes(longest + 64, 4);
  unsigned round = 0;
  for (const AnyMemory& memory : memory_of_each_kind(longest + 64)) {
    copy(memory.start, data.data(), data.size());
    for (FileOptions way : all_ways())
      for (const std::size_t bytes : lengths) {
        way.offset = offsets[++round % std::size(offsets)];
        way.durable = round % 8 == 0;
        const std::size_t shift = round % 3 == 0 ? 0 : round % 17;
        make_file(folder / "file", before);
        ASSERT_EQ(write_file(folder / "file", memory.start + shift, bytes, way), bytes);
        std::vector<std::byte> expected = before;
        expected.resize(std::max<std::size_t>(before.size(), bytes == 0 ? 0 : way.offset + bytes));
        std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(shift), bytes,
                    expected.begin() + static_cast<std::ptrdiff_t>(bytes == 0 ? 0 : way.offset));
        ASSERT_EQ(content_of(folder / "file"), expected) << words_of(memory, way, bytes);
      }
  }
}

TEST(Files, WriteMakesAFile) {
  const FileFolder folder;
  const std::vector<std::byte> data = test_bytes(5000, 5);
  write_file(folder / "new", data.data(), data.size(), {.offset = 10000, .durable = true});
  std::vector<std::byte> expected(10000);
  expected.insert(expected.end(), data.begin(), data.end());
  EXPECT_EQ(content_of(folder / "new"), expected);
  write_file(folder / "empty", nullptr, 0);
  EXPECT_EQ(std::filesystem::file_size(folder / "empty"), 0u);
}

TEST(Files, ObjectsOfEachProtocol) {
  const FileFolder folder;
  const std::size_t bytes = 3 * mib + 5;
  const std::vector<std::byte> content = test_bytes(bytes + 8, 11);
  make_file(folder / "from", content);
  for (const Protocol protocol : {Protocol::protection, Protocol::tracking}) {
    ObjectMemory object(bytes + 4096, {.protocol = protocol, .block_bytes = 65536});
    auto* const start = static_cast<std::byte*>(object.data());
    std::fill(start, start + object.bytes(), std::byte{3});
    read_file(folder / "from", start + 1, bytes, {.offset = 3});
    EXPECT_EQ(start[0], std::byte{3}) << name(protocol);
    EXPECT_EQ(start[bytes + 1], std::byte{3}) << name(protocol);
    EXPECT_EQ(std::vector<std::byte>(start + 1, start + 1 + bytes), part_of(content, 3, bytes)) << name(protocol);
    write_file(folder / "to", start + 1, bytes);
    EXPECT_EQ(content_of(folder / "to"), part_of(content, 3, bytes)) << name(protocol);
    std::filesystem::remove(folder / "to");
    EXPECT_THROW(read_file(folder / "from", start + 4096, bytes + 1), beeline::Error) << name(protocol);
  }
}

TEST(Files, ThreadsReadAtOnce) {
  const FileFolder folder;
  const std::vector<std::byte> content = test_bytes(4 * mib, 7);
  make_file(folder / "file", content);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      const DeviceMemory memory(Device::all(4)[static_cast<std::size_t>(thread) % Device::all(4).size()], mib + 9);
      for (int round = 0; round < 5; ++round) {
        const std::uint64_t offset = static_cast<std::uint64_t>(thread * 5 + round) * 100003 % (3 * mib - 9);
        read_file(folder / "file", memory.data(), mib + 9, {.offset = offset});
        if (bytes_of(memory.data(), mib + 9) != part_of(content, offset, mib + 9)) ++wrong;
      }
    });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Files, BeyondTwoGibibytesAndSparse) {
  if (under_thread_sanitizer) GTEST_SKIP() << "one build without ThreadSanitizer suffices";
  const FileFolder folder;
  constexpr std::size_t bytes = (std::size_t{1} << 31) + 3 * mib + 7;
  const std::vector<std::byte> mark = test_bytes(70001, 8);
  write_file(folder / "sparse", mark.data(), mark.size(), {.offset = 5});
  write_file(folder / "sparse", mark.data(), mark.size(), {.offset = 5 + bytes - mark.size()});
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no " << bytes << " bytes";
  auto* const start = static_cast<std::byte*>(memory);
  EXPECT_EQ(read_file(folder / "sparse", start, bytes, {.offset = 5}), bytes);
  EXPECT_EQ(std::vector<std::byte>(start, start + mark.size()), mark);
  EXPECT_EQ(std::vector<std::byte>(start + bytes - mark.size(), start + bytes), mark);
  EXPECT_TRUE(
      std::all_of(start + bytes / 2, start + bytes / 2 + mib, [](std::byte one) { return one == std::byte{}; }));
  ::munmap(memory, bytes);
}

TEST(Files, ProgressGrowsToAll) {
  const FileFolder folder;
  const std::vector<std::byte> data = test_bytes(mib, 9);
  std::size_t last = 0, calls = 0, all = 0;
  write_file(folder / "file", data.data(), data.size(), {.progress = [&](std::size_t moved, std::size_t total) {
               EXPECT_GE(moved, last);
               last = moved, all = total, ++calls;
             }});
  EXPECT_EQ(last, data.size());
  EXPECT_EQ(all, data.size());
  EXPECT_GE(calls, 1u);
}

TEST(Files, PlanCoversEachRange) {
  unsigned round = 0;
  for (const std::size_t bytes : lengths)
    for (const std::uint64_t offset : offsets) {
      const std::size_t alignment = ++round % 2 == 0 ? 4096 : 0;
      const detail::BlockPlan plan({offset, bytes}, 16384, alignment);
      std::size_t next = 0;
      for (std::size_t i = 0; i < plan.count(); ++i) {
        const detail::FileBlock block = plan.block(i);
        EXPECT_EQ(block.start, next);
        EXPECT_GT(block.bytes, 0u);
        EXPECT_LE(block.bytes, plan.largest_block());
        if (block.is_aligned) EXPECT_EQ((offset + block.start) % alignment + block.bytes % alignment, 0u);
        next += block.bytes;
      }
      EXPECT_EQ(next, bytes);
    }
}

TEST(Files, ThreadsCarryOutCalls) {
  const FileFolder folder;
  const std::vector<std::byte> content = test_bytes(5 * 4096, 10);
  make_file(folder / "file", content);
  const beeline::FileDescriptor file(::open((folder / "file").c_str(), O_RDONLY));
  std::vector<std::byte> there(content.size());
  const auto io = detail::make_thread_io(2);
  for (unsigned i = 0; i < 5; ++i)
    io->start(
        {.descriptor = file.get(), .memory = there.data() + i * 4096, .bytes = 4096, .offset = i * 4096u, .tag = i});
  for (unsigned i = 0; i < 5; ++i) {
    detail::BlockResult result;
    ASSERT_TRUE(io->await(result, 10'000'000'000, 1));
    EXPECT_EQ(result.value, 4096);
  }
  EXPECT_EQ(there, content);
  EXPECT_TRUE(io->cancel(1'000'000'000));
}

TEST(Files, ResultThatIsThereIsReturnedWhereMoreAreWanted) {
  if (const std::string reason = file_support().no_uring; !reason.empty()) GTEST_SKIP() << reason;
  const FileFolder folder;
  make_file(folder / "file", test_bytes(4096, 11));
  const beeline::FileDescriptor file(::open((folder / "file").c_str(), O_RDONLY));
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const beeline::FileDescriptor out(ends[0]), in(ends[1]);
  std::vector<std::byte> there(4097);
  const auto io = detail::make_uring_io(2);
  io->start({.descriptor = file.get(), .memory = there.data(), .bytes = 4096, .tag = 0});
  io->start({.descriptor = out.get(), .memory = there.data() + 4096, .bytes = 1, .tag = 1});
  detail::BlockResult result;
  ASSERT_TRUE(io->await(result, 100'000'000, 2));
  EXPECT_EQ(result.tag, 0u);
  EXPECT_EQ(result.value, 4096);
  EXPECT_FALSE(io->await(result, 1'000'000, 1));
  ASSERT_EQ(::write(in.get(), "x", 1), 1);
  ASSERT_TRUE(io->await(result, 10'000'000'000, 1));
  EXPECT_EQ(result.tag, 1u);
  EXPECT_TRUE(io->cancel(1'000'000'000));
}

}  // namespace

}  // namespace beeline_test::file_tests
