// SPDX-License-Identifier: Apache-2.0
// Which blocks of objects accesses of the CPU fetch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "beeline/hpe/object.hpp"
#include "tests/hpe/object_cases.hpp"

namespace beeline_test::objects {

namespace {

using namespace beeline::hpe;

class FetchesOfObjects : public EachProtocol {};
INSTANTIATE_TEST_SUITE_P(Host, FetchesOfObjects, host_protocols, protocol_name);

TEST_P(FetchesOfObjects, AreOfTheBlocksThatAreReadAlone) {
  Object<std::uint64_t> object(64 * words_of_block, options());
  Stream stream(Device::host());
  run_on(stream, object, add_to_all(3));
  for (const std::size_t each : {5, 50, 20}) EXPECT_EQ(object[each * words_of_block], 3u);
  EXPECT_EQ(object.memory().statistics().fetched_bytes, 3 * block);
}

/// Blocks that the CPU uses after each kernel are fetched at the first of its accesses.
TEST_P(FetchesOfObjects, AreMadeTogetherForRepeatedAccesses) {
  Object<std::uint64_t> object(64 * words_of_block, options());
  Stream stream(Device::host());
  auto fetched = [&, before = std::uint64_t{0}]() mutable {
    const std::uint64_t all = object.memory().statistics().fetched_bytes;
    return all - std::exchange(before, all);
  };
  const std::size_t same[] = {5, 50, 20};
  for (std::uint64_t kernel = 1; kernel <= 2; ++kernel) {
    run_on(stream, object, add_to_all(1));
    for (const std::size_t each : same) EXPECT_EQ(object[each * words_of_block], kernel);
    EXPECT_EQ(fetched(), 3 * block);
  }
  run_on(stream, object, add_to_all(1));
  EXPECT_EQ(object[20 * words_of_block], 3u);
  EXPECT_EQ(fetched(), 3 * block);
  object[50 * words_of_block] += 1;
  EXPECT_EQ(object[40 * words_of_block], 3u);
  EXPECT_EQ(fetched(), block);
  run_on(stream, object, add_to_all(1));  // two of the three blocks that were used were expected
  EXPECT_EQ(object[30 * words_of_block], 4u);
  EXPECT_EQ(object[50 * words_of_block], 5u);
  EXPECT_EQ(fetched(), 4 * block);
  run_on(stream, object, add_to_all(1));  // one of the three that were expected was used
  EXPECT_EQ(object[10 * words_of_block], 5u);
  EXPECT_EQ(fetched(), block);
}

TEST_P(FetchesOfObjects, RunAheadOfSequentialAccess) {
  Object<std::uint64_t> object(256 * words_of_block, options());
  Stream stream(Device::host());
  run_on(stream, object, add_to_all(3));
  const std::uint64_t before = object.memory().statistics().faults;
  for (std::size_t i = 0; i < object.size(); ++i) ASSERT_EQ(object[i], 3u);
  EXPECT_LE(object.memory().statistics().faults - before, 20u);  // 1 + 2 + 4 + ... blocks
}

/// As to a column of a matrix: forwards, backwards, and two in turn.
TEST_P(FetchesOfObjects, RunAheadOfAccessesAtEqualDistances) {
  constexpr std::size_t blocks = 256, step = 6;
  Object<std::uint64_t> object(blocks * words_of_block, options());
  Stream stream(Device::host());
  const auto word_of = [&](std::size_t block) { return object[block * words_of_block]; };
  const auto count_faults = [&](const auto& read) {
    run_on(stream, object, add_to_all(1));
    const std::uint64_t before = object.memory().statistics().faults;
    read();
    return object.memory().statistics().faults - before;
  };
  const std::uint64_t forwards = count_faults([&] {
    for (std::size_t each = 1; each < blocks; each += step) EXPECT_EQ(word_of(each), 1u) << each;
  });
  EXPECT_LE(forwards, 8u);  // 1 + 1 + 2 + 4 + ... of 43 blocks
  EXPECT_EQ(object.memory().statistics().fetched_bytes, 43 * block) << "blocks between them were fetched";
  const std::uint64_t backwards = count_faults([&] {
    for (std::size_t each = blocks; each > 0; each -= std::min(each, step)) EXPECT_EQ(word_of(each - 1), 2u) << each;
  });
  EXPECT_LE(backwards, 8u);
  const std::uint64_t in_turn = count_faults([&] {
    for (std::size_t each = 0; each < blocks / 2; each += step) {
      EXPECT_EQ(word_of(each), 3u) << each;
      EXPECT_EQ(word_of(blocks / 2 + 1 + each % (blocks / 2 - 1)), 3u) << each;
    }
  });
  EXPECT_LE(in_turn, 14u);
}

/// What is fetched ahead is not opened for writes, and so not sent back.
TEST_P(FetchesOfObjects, DoNotSendBlocksBack) {
  Object<std::uint64_t> object(64 * words_of_block, options());
  Stream stream(Device::host());
  run_on(stream, object, add_to_all(1));
  for (std::size_t each = 0; each < 40; each += 4) object[each * words_of_block] += 10;
  run_on(stream, object, add_to_all(1));
  EXPECT_EQ(object.memory().statistics().sent_bytes, 10 * block);
  for (std::size_t each = 0; each < 64; ++each)
    EXPECT_EQ(object[each * words_of_block], each < 40 && each % 4 == 0 ? 12u : 2u) << each;
}

/// More blocks than a guess takes ahead.
TEST_P(FetchesOfObjects, AreMadeTogetherForManyRepeatedAccesses) {
  constexpr std::size_t blocks = 3000, read = 600;
  Object<std::uint64_t> object(blocks * words_of_block, options());
  Stream stream(Device::host());
  const auto block_of = [](std::size_t access) { return access * 5 + access * access % 5; };
  for (std::uint64_t kernel = 1; kernel <= 3; ++kernel) {
    run_on(stream, object, add_to_all(1));
    for (std::size_t each = 0; each < read; ++each) ASSERT_EQ(object[block_of(each) * words_of_block], kernel) << each;
  }
  run_on(stream, object, add_to_all(1));
  const std::uint64_t before = object.memory().statistics().fetched_bytes;
  EXPECT_EQ(object[block_of(0) * words_of_block], 4u);
  EXPECT_GE(object.memory().statistics().fetched_bytes - before, read / 2 * block);
}

}  // namespace

}  // namespace beeline_test::objects
