// SPDX-License-Identifier: Apache-2.0
// Several writers of one file, of which one fails.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <future>
#include <optional>
#include <stdexcept>
#include <vector>

#include "beeline/hpe/files.hpp"
#include "beeline/runtime/file_descriptor.hpp"
#include "hpe/files/open_file.hpp"
#include "tests/hpe/file_folder.hpp"
#include "tests/hpe/memory_kinds.hpp"

namespace beeline_test::file_writer_tests {

namespace {

namespace fs = std::filesystem;
using namespace beeline::hpe;

constexpr std::size_t part = std::size_t{1} << 16;

/// A file, or none, before the writers come. Each test is run with both.
class FileWriters : public testing::TestWithParam<bool> {
 protected:
  FileWriters() {
    if (GetParam()) make_file(file, test_bytes(1000, 1));
  }
  const FileFolder folder;
  const fs::path file = folder / "file";
  const std::vector<std::byte> data = test_bytes(part, 2);

  [[nodiscard]] std::vector<std::byte> second_part() const {
    std::vector<std::byte> all = content_of(file);
    return {all.begin() + std::min(part, all.size()), all.end()};
  }
  /// A write of the first part that fails in the end, after `meanwhile`.
  template <class Meanwhile>
  void fail_after(Meanwhile meanwhile) {
    const FileOptions options{.progress = [&](std::size_t, std::size_t) {
      meanwhile();
      throw std::runtime_error("a failure");
    }};
    EXPECT_THROW(write_file(file, data.data(), part, options), std::runtime_error);
  }
};
INSTANTIATE_TEST_SUITE_P(File, FileWriters, testing::Bool(),
                         [](const auto& each) { return each.param ? "existing" : "made"; });

TEST_P(FileWriters, AFailureOfTheOnlyOneIsUndone) {
  fail_after([] {});
  EXPECT_EQ(fs::exists(file) ? fs::file_size(file) : 0, GetParam() ? 1000u : 0u);
  EXPECT_EQ(fs::exists(file), GetParam());
}

TEST_P(FileWriters, AFailureKeepsWhatAnotherOneHasWritten) {
  fail_after([&] { write_file(file, data.data(), part, {.offset = part}); });
  ASSERT_TRUE(fs::exists(file));
  EXPECT_EQ(second_part(), data);
}

TEST_P(FileWriters, AFailureKeepsTheFileThatAnotherOneHasOpen) {
  std::optional<detail::OpenFile> other;
  fail_after([&] { other.emplace(file, detail::FileDirection::writes, detail::FileRange{part, part}, FileAccess{}); });
  ASSERT_TRUE(fs::exists(file));
  ASSERT_EQ(::pwrite(other->buffered(), data.data(), part, part), static_cast<ssize_t>(part));
  other->keep();
  other.reset();
  EXPECT_EQ(second_part(), data);
}

/// As one that fails: it holds a lease while it removes the file.
TEST_P(FileWriters, AWriterWaitsForTheRemovalOfTheFile) {
  make_file(file, test_bytes(1000, 3));
  const beeline::FileDescriptor removing(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(::fcntl(removing.get(), F_SETSIG, SIGURG), 0);
  ASSERT_EQ(::fcntl(removing.get(), F_SETLEASE, F_WRLCK), 0) << "no leases in the folder for temporary files";
  std::future<void> writer = std::async(std::launch::async, [&] { write_file(file, data.data(), part); });
  while (::fcntl(removing.get(), F_GETLEASE) == F_WRLCK &&
         writer.wait_for(std::chrono::milliseconds(1)) == std::future_status::timeout)
    continue;
  fs::remove(file);
  EXPECT_EQ(::fcntl(removing.get(), F_SETLEASE, F_UNLCK), 0);
  writer.get();
  ASSERT_TRUE(fs::exists(file));
  EXPECT_EQ(content_of(file), data);
}

}  // namespace

}  // namespace beeline_test::file_writer_tests
