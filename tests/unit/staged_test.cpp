// SPDX-License-Identifier: Apache-2.0
// Both ends of a staged ring, driven step by step by one thread.
#include "transport/staged.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "beeline/core/layout.hpp"
#include "tests/support/random.hpp"

namespace beeline {

namespace {

using beeline_test::pattern;

constexpr std::size_t chunk = 100;

class StagedRings : public ::testing::Test {
 protected:
  StagedRings() {
    context_.abort_words = context_.host_abort_words = abort_words_;
    context_.deadline_ns = 10'000'000'000;
    context_.polling = 16;
    context_.size = 1;
    out_ = make_stream(host_device(), context_, std::make_shared<GridState>());
    in_ = make_stream(host_device(), context_, std::make_shared<GridState>());
  }
  [[nodiscard]] StagedRing ring(std::uint32_t slots) {
    buffers_.resize(slots * chunk);
    lengths_.assign(slots, 0);
    return {buffers_.data(), lengths_.data(), &published_, &consumed_, chunk, slots};
  }
  /// Lets the sender send as much as it can without its receiver.
  static void push(StagedSender& sender, const std::byte* source, Stream& stream) {
    for (std::uint64_t before = ~std::uint64_t{0}; before != sender.finished();) {
      before = sender.finished();
      sender.progress(source);
      while (!stream.drained()) std::this_thread::yield();
      sender.progress(source);
    }
  }

  std::uint64_t abort_words_[max_teams] = {}, published_ = 0, consumed_ = 0;
  Context context_{};
  std::unique_ptr<Stream> out_, in_;
  std::vector<std::byte> buffers_;
  std::vector<std::uint64_t> lengths_;
};

TEST_F(StagedRings, TheSenderStopsWhenTheRingIsFull) {
  StagedSender sender(*out_, ring(3));
  const std::vector<std::byte> data = pattern(1, 10 * chunk);
  sender.begin(data.size());
  EXPECT_EQ(10u, sender.target());
  push(sender, data.data(), *out_);
  EXPECT_EQ(3u, sender.finished());
  EXPECT_EQ(3u, published_);
  consumed_ = 1;
  push(sender, data.data(), *out_);
  EXPECT_EQ(4u, sender.finished());
  EXPECT_FALSE(sender.over());
}

TEST_F(StagedRings, TheReceiverTakesOnlyWhatIsPublished) {
  StagedReceiver receiver(*in_, ring(3));
  std::vector<std::byte> target(2 * chunk);
  receiver.begin(target.size());
  receiver.progress(target.data());
  EXPECT_TRUE(in_->drained());
  EXPECT_EQ(0u, receiver.finished());
  lengths_[0] = target.size();
  published_ = 1;
  while (receiver.finished() == 0) receiver.progress(target.data());
  receiver.progress(target.data());
  EXPECT_EQ(1u, receiver.finished());
  EXPECT_EQ(1u, consumed_);
}

TEST_F(StagedRings, AMessageOfAnotherLengthStays) {
  StagedSender sender(*out_, ring(2));
  StagedReceiver receiver(*in_, ring(2));
  const std::vector<std::byte> data = pattern(1, chunk + 10);
  sender.begin(data.size());
  push(sender, data.data(), *out_);
  std::vector<std::byte> target(5 * chunk, std::byte{0x77});
  const std::vector<std::byte> untouched = target;
  for (const std::size_t expected : {chunk + 9, 5 * chunk, std::size_t{0}}) {
    receiver.begin(expected);
    receiver.progress(target.data());
    EXPECT_TRUE(receiver.over());
    EXPECT_EQ(data.size(), receiver.other_length());
    EXPECT_EQ(untouched, target);
    EXPECT_EQ(0u, consumed_);
  }
  receiver.begin(data.size());
  while (!receiver.over()) receiver.progress(target.data());
  EXPECT_FALSE(receiver.other_length());
  target.resize(data.size());
  EXPECT_EQ(data, target);
}

TEST_F(StagedRings, MessagesOfAnySizeFollowEachOther) {
  for (const std::uint32_t slots : {1u, 2u, 5u}) {
    published_ = consumed_ = 0;
    StagedSender sender(*out_, ring(slots));
    StagedReceiver receiver(*in_, ring(slots));
    std::uint64_t key = 0;
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, chunk, chunk + 1, 7 * chunk - 1, std::size_t{0}, 5 * chunk}) {
      const std::vector<std::byte> data = pattern(++key, bytes);
      std::vector<std::byte> target(bytes + 1, std::byte{0x77});
      sender.begin(bytes);
      receiver.begin(bytes);
      while (!sender.over() || !receiver.over()) {
        sender.progress(data.data());
        receiver.progress(target.data());
      }
      EXPECT_EQ(std::byte{0x77}, target.back());
      target.pop_back();
      EXPECT_EQ(data, target) << bytes << " bytes through " << slots << " slots";
    }
  }
}

}  // namespace

}  // namespace beeline
