// SPDX-License-Identifier: Apache-2.0
// Transfers of files in the order of streams.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "beeline/hpe/files.hpp"
#include "hpe/files/copies_in_turn.hpp"
#include "hpe/files/lane.hpp"
#include "hpe/files/on_gpu_stream.hpp"
#include "tests/hpe/file_folder.hpp"
#include "tests/hpe/memory_kinds.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test::file_stream_tests {

namespace {

using namespace beeline::hpe;
using beeline::Status;
using detail::FileDirection;

constexpr std::size_t mib = std::size_t{1} << 20;
/// Around the limits of pages, of blocks and of calls in flight; they grow, so that buffers do.
constexpr std::size_t longest = under_thread_sanitizer ? mib + 1 : 9 * mib + 1;
constexpr std::size_t lengths[] = {0, 1, 511, 4096, 4099, 262145, longest - 4109, longest};

std::vector<std::byte> part_of_bytes(const std::vector<std::byte>& all, std::size_t start, std::size_t bytes) {
  return {all.begin() + static_cast<std::ptrdiff_t>(start), all.begin() + static_cast<std::ptrdiff_t>(start + bytes)};
}

TEST(Files, OnStreamsOfEachDevice) {
  const FileFolder folder;
  const std::vector<std::byte> content = test_bytes(3 * mib + 5, 6);
  make_file(folder / "from", content);
  std::vector<Device> devices = Device::all(2);
  devices.push_back(Device::host(3));
  for (const Device device : devices) {
    Stream stream(device);
    const DeviceMemory first(device, content.size()), second(device, content.size());
    stream.fill(first.data(), 7, content.size());
    read_file(folder / "from", first.data(), content.size(), stream);
    copy(second.data(), first.data(), content.size(), stream);
    stream.fill(first.data(), 9, content.size());
    write_file(folder / "to", second.data(), content.size(), stream);
    stream.fill(second.data(), 9, content.size());
    stream.synchronize();
    EXPECT_EQ(content_of(folder / "to"), content) << device.name();
    std::filesystem::remove(folder / "to");
  }
}

/// While a GPU's stream waits for a transfer, CUDA frees no pinned memory.
TEST(Files, BuffersAreFreedWhenNoStreamWaits) {
  using beeline::hpe::detail::UnusedBuffers;
  std::atomic<int> freed{0};
  const auto buffers = [&] {
    return std::shared_ptr<void>(&freed, [](void* count) { ++*static_cast<std::atomic<int>*>(count); });
  };
  // Threads of earlier transfers end a little after their streams' waits.
  UnusedBuffers::add(buffers());
  for (int i = 0; i < 10000 && freed == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_EQ(freed.exchange(0), 1);
  {
    const UnusedBuffers::Kept first;
    {
      const UnusedBuffers::Kept second;
      UnusedBuffers::add(buffers());
    }
    UnusedBuffers::add(buffers());
    EXPECT_EQ(freed, 0);
  }
  EXPECT_EQ(freed, 2);
  UnusedBuffers::add(buffers());
  EXPECT_EQ(freed, 3);
}

TEST(Files, VariantsOnStreams) {
  const FileFolder folder;
  const std::vector<std::byte> content = test_bytes(3 * mib + 5, 8);
  make_file(folder / "from", content);
  for (const FileVariant variant : {FileVariant::user, FileVariant::pinned, FileVariant::double_buffered}) {
    const Device device = Device::all(1).front();
    Stream stream(device);
    const DeviceMemory memory(device, content.size());
    if (device.is_gpu()) {
      check_error(beeline::Status::unavailable, {name(variant), "automatic"},
                  [&] { read_file(folder / "from", memory.data(), content.size(), stream, {.variant = variant}); });
      continue;
    }
    read_file(folder / "from", memory.data(), content.size(), stream, {.variant = variant});
    write_file(folder / "to", memory.data(), content.size(), stream, {.variant = variant});
    stream.synchronize();
    EXPECT_EQ(content_of(folder / "to"), content) << name(variant);
    std::filesystem::remove(folder / "to");
  }
}

/// One stream's transfers, put on it while many other streams exist: a GPU has fewer hardware queues than that, so that
/// some of them share the one of the stream that waits.
TEST(Files, TransfersOfAStreamAmongManyStreams) {
  const FileFolder folder;
  const std::vector<std::byte> content = test_bytes(longest, 12);
  make_file(folder / "from", content);
  for (const Device device : Device::all(1)) {
    std::vector<std::unique_ptr<Stream>> others;
    for (int i = 0; i < (device.is_gpu() ? 48 : 4); ++i) others.push_back(std::make_unique<Stream>(device));
    Stream stream(device);
    const DeviceMemory memory(device, content.size());
    stream.fill(memory.data(), 1, content.size());
    const auto file_of = [&](std::size_t bytes) { return folder / std::to_string(bytes).c_str(); };
    for (const std::size_t bytes : lengths) {
      read_file(folder / "from", memory.data(), bytes, stream, {.offset = longest - bytes});
      write_file(file_of(bytes), memory.data(), bytes, stream, {.offset = 3});
      stream.fill(memory.data(), 2, bytes);
    }
    stream.synchronize();
    for (const std::size_t bytes : lengths) {
      std::vector<std::byte> expected(bytes == 0 ? 0 : 3);
      expected.insert(expected.end(), content.end() - static_cast<std::ptrdiff_t>(bytes), content.end());
      EXPECT_EQ(content_of(file_of(bytes)), expected) << device.name() << ", " << bytes << " bytes";
      std::filesystem::remove(file_of(bytes));
    }
  }
}

/// Copies and transfers of a host device's stream that concern a device whose own stream waits for them.
TEST(Files, StreamsWaitForAHostDevicesTransfers) {
  const FileFolder folder;
  const std::vector<std::byte> content = test_bytes(longest, 14);
  make_file(folder / "from", content);
  const Device device = Device::all(1).front();
  std::vector<std::unique_ptr<Stream>> waiting;
  for (int i = 0; i < (device.is_gpu() ? 40 : 4); ++i) waiting.push_back(std::make_unique<Stream>(device));
  Stream of_host(Device::host(5));
  const DeviceMemory memory(device, longest), target(device, longest);
  const PinnedMemory from(longest), to(longest);
  for (int round = 0; round < 3; ++round) {
    of_host.enqueue([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      std::fill_n(from.data(), longest, static_cast<std::byte>(round));
    });
    copy(memory.data(), from.data(), longest, of_host);
    read_file(folder / "from", target.data(), longest, of_host);
    write_file(folder / "to", memory.data(), longest, of_host);
    for (const auto& each : waiting) each->wait_for(of_host);
    copy(to.data(), target.data(), longest, *waiting.front());
    for (const auto& each : waiting) each->synchronize();
    of_host.synchronize();
    EXPECT_EQ(content_of(folder / "to"), std::vector<std::byte>(longest, static_cast<std::byte>(round)));
    EXPECT_EQ(std::vector<std::byte>(to.data(), to.data() + longest), content);
  }
}

/// As transfers on GPUs' streams, on a host device's: a thread moves the bytes, and the stream copies.
TEST(Files, CopiesInTurn) {
  const FileFolder folder;
  const std::vector<std::byte> content = test_bytes(longest + 8192, 13);
  make_file(folder / "from", content);
  std::vector<std::byte> first(longest), second(longest);
  Stream stream(Device::host());
  const auto run = [&](const char* name, FileDirection direction, std::byte* memory, std::size_t bytes,
                       const FileOptions& options) {
    stream.enqueue(detail::run_on_gpu_stream(
        std::make_shared<detail::FileTransfer>(folder / name, direction, memory, bytes, options), stream.state(),
        true));
  };
  for (const std::size_t block_bytes : {std::size_t{0}, std::size_t{20000}})
    for (const std::size_t bytes : lengths) {
      if (bytes == 0) continue;
      const std::uint64_t offset = bytes % 8192;
      run("from", FileDirection::reads, first.data(), bytes, {.offset = offset, .block_bytes = block_bytes});
      copy(second.data(), first.data(), bytes, stream);
      run("to", FileDirection::writes, second.data(), bytes, {.offset = 7, .block_bytes = block_bytes});
      stream.synchronize();
      const std::vector<std::byte> expected = part_of_bytes(content, offset, bytes);
      EXPECT_EQ(part_of_bytes(second, 0, bytes), expected) << bytes;
      EXPECT_EQ(part_of_bytes(content_of(folder / "to"), 7, bytes), expected) << bytes;
    }
}

TEST(FileFaults, CopiesThatAStreamDoesNotMake) {
  const FileFolder folder;
  make_file(folder / "file", test_bytes(mib, 15));
  std::vector<std::byte> there(mib);
  const auto run = [&](const std::atomic<bool>& is_abandoned) {
    detail::FileTransfer transfer(folder / "file", FileDirection::reads, there.data(), there.size(),
                                  {.deadline = std::chrono::milliseconds(100)});
    const detail::Proceeding how = transfer.in_turn();
    detail::FileLane lane(detail::make_block_io(detail::FileLane::most_calls));
    detail::CopiesInTurn copies(transfer, how, lane.buffers(how.slots * how.buffer_bytes, false), false, is_abandoned);
    transfer.run_in_turn(how, lane, copies, [] { ADD_FAILURE() << "calls did not end"; });
  };
  check_error(Status::deadline, {"no progress of blocks", "after 0 of 1048576 bytes", "in copies"},
              [&] { run(false); });
  check_error(Status::aborted, {"did not take all copies"}, [&] { run(true); });
}

/// A transfer that fails lets the stream go on.
/// Writes a new file on a stream, and fails when it is written, after `meanwhile`.
void fail_to_write(const std::filesystem::path& path, const std::function<void()>& meanwhile) {
  const std::vector<std::byte> content = test_bytes(100, 2);
  std::atomic<bool> may_begin{false};
  Stream stream(Device::host());
  stream.enqueue([&] {
    while (!may_begin) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  write_file(path, content.data(), content.size(), stream,
             {.progress = [](std::size_t, std::size_t) { throw std::runtime_error("enough"); }});
  meanwhile();
  may_begin = true;
  EXPECT_THROW(stream.synchronize(), std::runtime_error);
}

TEST(FileFaults, AFailureRemovesTheFilesThatWereMadeAlone) {
  const FileFolder folder, other;
  const std::vector<std::byte> content = test_bytes(100, 1);
  fail_to_write(folder / "file", [&] {  // the name now belongs to another file
    std::filesystem::rename(folder / "file", folder / "renamed");
    make_file(folder / "file", content);
  });
  EXPECT_EQ(content_of(folder / "file"), content);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder / ".");
  make_file(other / "relative", content);
  fail_to_write("relative", [&] { std::filesystem::current_path(other / "."); });
  std::filesystem::current_path(before);
  EXPECT_EQ(content_of(other / "relative"), content);
  EXPECT_FALSE(std::filesystem::exists(folder / "relative"));
}

TEST(FileFaults, FileThatShrinksBeforeAStreamCopies) {
  const FileFolder folder;
  make_file(folder / "file", test_bytes(4 * mib, 16));
  std::vector<std::byte> here(4 * mib);
  std::atomic<bool> may_begin{false};
  Stream stream(Device::host());
  stream.enqueue([&] {
    while (!may_begin) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  stream.enqueue(
      detail::run_on_gpu_stream(std::make_shared<detail::FileTransfer>(folder / "file", FileDirection::reads,
                                                                       here.data(), here.size(), FileOptions{}),
                                stream.state(), true));
  std::filesystem::resize_file(folder / "file", mib + 17);
  may_begin = true;
  check_error(Status::invalid_argument, {"has shrunk"}, [&] { stream.synchronize(); });
  EXPECT_TRUE(stream.is_done());
}

}  // namespace

}  // namespace beeline_test::file_stream_tests
