// SPDX-License-Identifier: Apache-2.0
// Wrong uses of objects and files that are refused before anything is touched.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <thread>
#include <vector>

#include "beeline/hpe/files.hpp"
#include "beeline/hpe/memory.hpp"
#include "beeline/hpe/object.hpp"
#include "beeline/hpe/stream.hpp"
#include "hpe/files/open_file.hpp"
#include "tests/hpe/file_folder.hpp"
#include "tests/hpe/object_cases.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::refusals {

namespace {

using namespace beeline::hpe;
using beeline::Status;

class RangesOfObjects : public EachProtocol {};
INSTANTIATE_TEST_SUITE_P(Host, RangesOfObjects, host_protocols, protocol_name);

/// Two objects, of which one may lie behind the other: a range never goes on in the next one.
TEST_P(RangesOfObjects, EndWithTheObject) {
  const FileFolder folder;
  const std::vector<std::byte> data(4 * block, std::byte{7});
  make_file(folder / "file", data);
  Object<char> object(2 * block, options()), next(2 * block, options());
  Stream stream(Device::host());
  std::byte* const middle = reinterpret_cast<std::byte*>(object.data()) + block;
  const auto is_refused = [](const auto& call) {
    check_error(Status::invalid_argument, {"4097 bytes", "ends after 4096"}, call);
  };
  is_refused([&] { read_file(folder / "file", middle, block + 1); });
  is_refused([&] { read_file(folder / "file", middle, block + 1, stream); });
  is_refused([&] { write_file(folder / "new", middle, block + 1); });
  is_refused([&] { write_file(folder / "new", middle, block + 1, stream); });
  EXPECT_FALSE(std::filesystem::exists(folder / "new"));
  const auto is_access_refused = [&](std::size_t first, std::size_t count) {
    check_error(Status::invalid_argument, {"the object at", "has 8192"},
                [&] { const HostAccess access(object, first, count, Access::write); });
  };
  is_access_refused(block, block + 1);
  is_access_refused(2 * block + 1, 0);
  is_access_refused(1, ~std::size_t{0});
  is_access_refused(0, 0);
  check_error(Status::invalid_argument, {"elements of 0 bytes"},
              [&] { const HostAccess access(object.state(), 0, 1, 0, Access::read); });
  check_error(Status::invalid_argument, {"nullptr"}, [&] { const DeviceAccess access(stream, {nullptr}); });
  stream.synchronize();
  for (const Object<char>* each : {&object, &next})
    EXPECT_EQ(std::count(each->begin(), each->end(), 0), static_cast<std::ptrdiff_t>(2 * block));
}

/// The library clears the memory that it is given: not other memory, and not beyond its end.
TEST(MemoryForObjects, IsTheDevicesAndLongEnough) {
  const auto refused = [](std::initializer_list<std::string_view> words, void* memory) {
    ObjectOptions options = small_blocks();
    options.device_memory = memory;
    check_error(Status::invalid_argument, words, [&] { Object<char>(block, options); });
  };
  const DeviceMemory brief(Device::host(), block - 1);
  const Object<char> other(block, small_blocks());
  refused({"belongs to nobody"}, reinterpret_cast<void*>(16));
  refused({"the memory for an object", "1 bytes beyond its allocation"}, brief.data());
  refused({"another object's"}, other.data());
  ObjectOptions odd = small_blocks();
  const DeviceMemory enough(Device::host(), 2 * block);
  odd.device_memory = enough.data() + 1;
  check_error(Status::invalid_argument, {"not aligned as its elements"}, [&] { Object<int>(1, odd); });
  EXPECT_EQ(Object<char>(1, odd).on(Device::host()), reinterpret_cast<char*>(enough.data()) + 1);
}

TEST(DeadlinesOfObjects, AreMoreThanNothing) {
  const auto with = [](std::chrono::nanoseconds deadline) { return small_blocks(Protocol::protection, deadline); };
  for (const std::chrono::nanoseconds none : {std::chrono::nanoseconds(0), std::chrono::nanoseconds(-1)})
    check_error(Status::invalid_argument, {"deadline of", "more than 0"}, [&] { Object<char>(1, with(none)); });
  Object<char> object(1, with(std::chrono::nanoseconds::max()));  // added to a clock, it must not be in the past
  Stream stream(Device::host());
  run_on(stream, object, [](char* all, std::size_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    all[0] = 'k';
  });
  EXPECT_EQ(object[0], 'k');
}

/// As io_uring ends calls whose threads the kernel may not start.
TEST(Files, NameTheLimitOnThreads) {
  const FileFolder folder;
  make_file(folder / "file", std::vector<std::byte>(block));
  const detail::OpenFile file(folder / "file", detail::FileDirection::reads, {0, block}, FileAccess::buffered);
  check_error(Status::no_resource, {"file", "io_uring", "ulimit -u"}, [&] { file.fail(ECANCELED, 0); });
}

/// The last case that uses this device: it stays lost.
TEST(Files, AndTheMemoryOfALostDevice) {
  const FileFolder folder;
  const std::vector<std::byte> data(block, std::byte{7});
  make_file(folder / "file", data);
  const Device lost = Device::host(57);
  const DeviceMemory memory(lost, block);
  std::fill_n(memory.data(), block, std::byte{1});
  Stream other(Device::host());
  simulate_loss(lost);
  const auto is_refused = [](const auto& call) {
    check_error(Status::unavailable, {"host device 57 cannot be used any more", "disappeared"}, call);
  };
  is_refused([&] { read_file(folder / "file", memory.data(), block); });
  is_refused([&] { read_file(folder / "file", memory.data(), block, other); });
  is_refused([&] { write_file(folder / "new", memory.data(), block); });
  is_refused([&] { write_file(folder / "file", memory.data(), block, other); });
  other.synchronize();
  EXPECT_FALSE(std::filesystem::exists(folder / "new"));
  EXPECT_EQ(content_of(folder / "file"), data);
  EXPECT_EQ(std::count(memory.data(), memory.data() + block, std::byte{1}), static_cast<std::ptrdiff_t>(block));
}

}  // namespace

}  // namespace beeline_test::refusals
