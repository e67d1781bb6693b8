// SPDX-License-Identifier: Apache-2.0
// Acknowledgements between nodes: by themselves, or with the messages that follow.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/unit/remote_parts.hpp"

namespace beeline {

namespace {

class Acknowledgements : public RemoteParts {
 protected:
  /// A message of rank 1 arrives, and nothing else happens for two turns.
  void take_next() {
    exchange_->receiver.received(put_here(++taken_, 64, 8), std::as_bytes(std::span(memory_)).first(8));
    exchange_->turn();
    exchange_->turn();
  }
  void await_acknowledgement() {
    while (exchange_->peers[1].reported != taken_) exchange_->turn();
  }
  void answer() {
    post(put_of(64, source_.data(), 8));
    exchange_->turn();
    EXPECT_EQ(taken_, worker_->sent.back().message.acknowledged);
    acknowledge(++answered_);
  }
  /// Number of those that were sent by themselves.
  [[nodiscard]] std::size_t alone() const { return worker_->of(MessageKind::acknowledge).size(); }

  std::uint64_t taken_ = 0, answered_ = 0;
};

TEST_F(Acknowledgements, WaitForMessagesThatFollowSoon) {
  constexpr std::size_t rounds = 200, without = 5;
  for (std::size_t round = 0; round < rounds; ++round) {
    take_next();
    answer();
  }
  const std::size_t before = alone();
  EXPECT_LT(before, rounds);
  for (std::size_t round = 0; round < without; ++round) {
    take_next();
    await_acknowledgement();
  }
  EXPECT_EQ(before + without, alone());
}

/// The peer's caller waits in `quiet`. Its message and its question arrive together.
TEST_F(Acknowledgements, AreSentAtOnceIfTheyAreAskedFor) {
  worker_->on_progress = [this] {
    NetworkMessage put = put_here(++taken_, 64, 8), question = from_peer(MessageKind::ask, 0);
    put.may_wait = 1, question.value = taken_;
    exchange_->receiver.received(put, std::as_bytes(std::span(memory_)).first(8));
    exchange_->receiver.received(question, {});
    return true;
  };
  exchange_->turn();
  EXPECT_EQ(1u, alone()) << "in the same turn: it may be the last for a while";
  EXPECT_FALSE(exchange_->has_left_work());
}

/// This rank sends its next message only after the peer has received the acknowledgement.
TEST_F(Acknowledgements, DoNotWaitForMessagesThatWaitForThem) {
  for (int round = 0; round < 1000 && exchange_->peers[1].follows_soon >= 0; ++round) {
    take_next();
    await_acknowledgement();
    answer();
  }
  EXPECT_GT(0, exchange_->peers[1].follows_soon);
  const std::size_t before = alone();
  take_next();
  EXPECT_EQ(before + 1, alone()) << "at once";
}

}  // namespace

}  // namespace beeline
