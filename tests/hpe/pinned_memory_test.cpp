// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "beeline/hpe/memory.hpp"
#include "hpe/files/lane.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::pinned_memory {

namespace {

using namespace beeline::hpe;

constexpr std::size_t page = beeline::HostBuffer::large_page_bytes;

std::size_t offset_in_page(const std::byte* start) { return reinterpret_cast<std::uintptr_t>(start) % page; }

/// The kernel's flags of the mapping that begins at an address; empty if none does.
std::string flags_of_mapping(const std::byte* start) {
  std::ifstream mappings("/proc/self/smaps");
  const std::string begin = fmt::format("{:x}-", reinterpret_cast<std::uintptr_t>(start));
  bool is_this = false;
  for (std::string line; std::getline(mappings, line);) {
    is_this = is_this || line.starts_with(begin);
    if (is_this && line.starts_with("VmFlags:")) return line;
  }
  return {};
}

TEST(PinnedMemories, AreInLargePages) {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) GTEST_SKIP() << "the kernel has no large pages";
  for (const std::size_t bytes : {page / 2, page, 3 * page + 4096}) {
    const PinnedMemory memory(bytes);
    EXPECT_EQ(offset_in_page(memory.data()), 0u);
    EXPECT_NE(flags_of_mapping(memory.data()).find(" hg"), std::string::npos) << flags_of_mapping(memory.data());
  }
}

TEST(PinnedMemories, AreWritableToTheLastByte) {
  for (const std::size_t bytes : {std::size_t{1}, page / 2 - 1, page / 2, page, page + 1, 2 * page + 4096}) {
    const PinnedMemory memory(bytes);
    EXPECT_EQ(memory.bytes(), bytes);
    memory.data()[0] = memory.data()[bytes - 1] = std::byte{7};
    EXPECT_EQ(memory.data()[bytes - 1], std::byte{7});
  }
}

TEST(PinnedMemories, OfAllAddressesAreRefused) {
  check_error(beeline::Status::no_resource, {}, [] { const PinnedMemory memory(~std::size_t{0}); });
}

/// Those of short blocks, too.
TEST(Files, BuffersAreInLargePages) {
  detail::FileLane lane(detail::make_thread_io(1));
  for (const bool is_pinned : {false, true}) EXPECT_EQ(offset_in_page(lane.buffers(page / 4 * 3, is_pinned)), 0u);
}

}  // namespace

}  // namespace beeline_test::pinned_memory
