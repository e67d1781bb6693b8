// SPDX-License-Identifier: Apache-2.0
// Transfers between files and objects.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <thread>
#include <vector>

#include "beeline/hpe/files.hpp"
#include "beeline/hpe/object.hpp"
#include "tests/hpe/file_folder.hpp"
#include "tests/hpe/object_cases.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::object_files {

namespace {

using namespace beeline::hpe;
using beeline::Status;
using namespace std::chrono_literals;

class FilesOfObjects : public EachProtocol {};
INSTANTIATE_TEST_SUITE_P(Host, FilesOfObjects, host_protocols, protocol_name);

TEST_P(FilesOfObjects, AreReadAndWritten) {
  const FileFolder folder;
  const std::filesystem::path file = folder / "object";
  Object<std::uint64_t> object(20 * words_of_block, options()), back(20 * words_of_block, options());
  Stream stream(Device::host());
  std::iota(object.begin(), object.end(), 0);
  run_on(stream, object, add_to_all(5));
  EXPECT_EQ(write_file(file, object.data(), 20 * block), 20 * block);
  EXPECT_EQ(read_file(file, back.data(), 20 * block), 20 * block);
  run_on(stream, back, add_to_all(1));
  for (std::size_t i = 0; i < back.size(); ++i) ASSERT_EQ(back[i], i + 6);
}

/// A transfer on a stream has the object from its call on: kernels behind it and the CPU see its bytes, and it does not
/// wait for kernels behind it.
TEST_P(FilesOfObjects, OnStreamsFollowKernelsAndPrecedeThem) {
  const FileFolder folder;
  constexpr std::size_t count = 5 * words_of_block + 3, bytes = count * 8;
  std::vector<std::byte> content(bytes);
  for (std::size_t i = 0; i < count; ++i) std::memcpy(&content[i * 8], &i, 8);
  make_file(folder / "from", content);
  Object<std::uint64_t> object(count + 2, options());
  for (const int device : {0, 1}) {
    Stream stream(Device::host(device));
    object[0] = 70;
    object[count + 1] = 71;
    stream.enqueue([] { std::this_thread::sleep_for(20ms); });
    run_on(stream, object, add_to_all(1000));
    read_file(folder / "from", object.data() + 1, bytes, stream);
    run_on(stream, object, add_to_all(1));
    write_file(folder / "to", object.data() + 1, bytes, stream);
    run_on(stream, object, add_to_all(1));
    EXPECT_EQ(object[1], 2u) << "an access waits for the work before";
    EXPECT_EQ(object[count], count + 1);
    EXPECT_EQ(object[0], 1072u);
    EXPECT_EQ(object[count + 1], 1073u);
    stream.synchronize();
    const std::vector<std::byte> written = content_of(folder / "to");
    std::uint64_t last = 0;
    std::memcpy(&last, &written[bytes - 8], 8);
    EXPECT_EQ(last, count);
  }
}

TEST_P(FilesOfObjects, ThatAreNotThereLeaveTheObjectAsItIs) {
  const FileFolder folder;
  Object<char> object(2 * block, options());
  Stream stream(Device::host());
  object[5] = 'k';
  const auto read = [&] { read_file(folder / "none", object.data(), block, stream); };
  check_error(Status::invalid_argument, {"No such file"}, read);
  EXPECT_EQ(object.memory().statistics().sent_bytes, 0u);
  EXPECT_EQ(object[5], 'k');
}

}  // namespace

}  // namespace beeline_test::object_files
