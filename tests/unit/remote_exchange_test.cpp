// SPDX-License-Identifier: Apache-2.0
// The parts that exchange commands with other nodes, over a worker that only stores the messages given to it.
#include "transports/remote_exchange.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "beeline/beeline.hpp"
#include "tests/unit/remote_parts.hpp"
#include "transports/network_engine.hpp"

namespace beeline {

namespace {

using namespace std::chrono_literals;

class RemotePartsWithKeys : public RemoteParts {
 protected:
  RemotePartsWithKeys() : RemoteParts(true) {}
};

TEST(MessageHeaders, LeaveOutTheCommandIfTheirKindHasNone) {
  for (const MessageKind kind : {MessageKind::hello, MessageKind::acknowledge, MessageKind::command, MessageKind::data,
                                 MessageKind::placed, MessageKind::key_ended}) {
    NetworkMessage sent{};
    sent.kind = kind, sent.number = 7, sent.command.row_bytes = 9;
    const auto all = std::as_bytes(std::span(&sent, 1));
    const std::size_t length = header_bytes(kind);
    NetworkMessage taken{};
    ASSERT_TRUE(take_header(taken, all.first(length)));
    EXPECT_EQ(7u, taken.number);
    EXPECT_EQ(length == sizeof sent ? 9u : 0u, taken.command.row_bytes);
    for (const std::size_t wrong : {std::size_t{0}, length - 1, sizeof sent + 64 - length}) {
      NetworkMessage other{};
      EXPECT_FALSE(take_header(other, all.first(wrong))) << wrong << " bytes";
    }
  }
}

TEST_F(RemoteParts, SendCommandsThatAreDoneWhenTheyAreAcknowledged) {
  worker_->is_quick = false;
  post(put_of(64, source_.data(), 1000));
  post(put_of(2048, source_.data(), 8));
  EXPECT_TRUE(exchange_->sender.has_posted());
  EXPECT_TRUE(exchange_->turn());
  ASSERT_EQ(2u, worker_->sent.size());
  EXPECT_EQ(1u, worker_->sent[0].message.number);
  EXPECT_EQ(2u, worker_->sent[1].message.number);
  EXPECT_EQ(1000u, worker_->sent[0].payload.size());
  EXPECT_EQ(0u, reusable()) << "the transport reads the sources";
  EXPECT_TRUE(exchange_->sender.reads_sources_for(1));
  exchange_->receiver.sent(worker_->sent[1].token);
  exchange_->turn();
  EXPECT_EQ(0u, reusable()) << "in the order of the ring";
  exchange_->receiver.sent(worker_->sent[0].token);
  exchange_->turn();
  EXPECT_EQ(2u, reusable());
  EXPECT_EQ(0u, completed());
  EXPECT_FALSE(exchange_->sender.is_settled(1));
  acknowledge(1);
  EXPECT_EQ(1u, completed());
  acknowledge(2);
  EXPECT_EQ(2u, completed());
  EXPECT_TRUE(exchange_->sender.is_settled(1));
}

TEST_F(RemoteParts, SendNoMoreThanARankMayHaveInFlight) {
  for (std::uint32_t i = 0; i < command_ring_depth; ++i) post(put_of(64, source_.data(), 8));
  while (exchange_->sender.send_posted()) {
  }
  const std::size_t first = worker_->sent.size();
  EXPECT_LE(first, most_in_flight);
  acknowledge(first);
  while (exchange_->sender.send_posted()) {
  }
  EXPECT_EQ(std::size_t{command_ring_depth}, worker_->of(MessageKind::command).size());
}

/// A command queue of rank 0 with commands to rank 1.
class QueueToOtherNode final : public CarriedQueue {
 public:
  QueueToOtherNode() : CarriedQueue(memory_) {}
  void refused(std::uint64_t, const std::string& reason) noexcept override { ADD_FAILURE() << reason; }
  void has_grown() noexcept override {}
  void post(const Command& command) {
    ring.commands[posted_] = command;
    ring.commands[posted_].sequence = posted_ + 1;
    ++posted_;
  }

 private:
  CommandRing memory_{};
  std::uint64_t posted_ = 0;
};

/// `source_` is outside the heap, so it may be unmapped.
TEST_F(RemoteParts, LeaveCommandsThatNeedALock) {
  QueueToOtherNode safe, unsafe;
  exchange_->sender.open(static_cast<CarriedQueue&>(safe));
  exchange_->sender.open(static_cast<CarriedQueue&>(unsafe));
  safe.post(put_of(64, memory_.data(), 8));
  unsafe.post(put_of(64, source_.data(), 8));
  unsafe.post(put_of(64, memory_.data(), 8));
  post(put_of(64, source_.data(), 8));  // by a kernel, whose source stays mapped
  EXPECT_FALSE(exchange_->sender.send_posted_without_locks());
  EXPECT_EQ(2u, worker_->of(MessageKind::command).size());
  EXPECT_TRUE(exchange_->sender.has_posted());
  EXPECT_FALSE(exchange_->sender.send_posted_without_locks()) << "they are left until a thread with the lock comes";
  EXPECT_TRUE(exchange_->sender.send_posted());
  EXPECT_EQ(4u, worker_->of(MessageKind::command).size()) << "in the order of their queue";
  EXPECT_TRUE(exchange_->sender.send_posted_without_locks()) << "nothing is left";
  exchange_->sender.close(unsafe);
  exchange_->sender.close(safe);
}

TEST_F(RemoteParts, LeavePutsOfSeparateRowsWhichAreCopiedUnderALock) {
  QueueToOtherNode queue;
  exchange_->sender.open(static_cast<CarriedQueue&>(queue));
  Command rows = put_of(64, memory_.data(), 8);
  rows.rows = 2, rows.local_stride = 16;
  queue.post(rows);
  EXPECT_FALSE(exchange_->sender.send_posted_without_locks());
  EXPECT_TRUE(worker_->of(MessageKind::command).empty());
  EXPECT_TRUE(exchange_->sender.send_posted());
  EXPECT_EQ(1u, worker_->of(MessageKind::command).size());
  exchange_->sender.close(queue);
}

TEST_F(RemoteParts, EndCommandsToARankThatIsLost) {
  post(put_of(64, source_.data(), 8));
  exchange_->turn();
  exchange_->give_up(1, "it takes nothing");
  exchange_->receiver.lost(1, "later");
  EXPECT_EQ(std::vector<int>{1}, worker_->disconnected);
  EXPECT_EQ(0u, completed()) << "waits for it end with the world";
  const auto lost = exchange_->peers.take_lost(~std::uint64_t{0});
  ASSERT_EQ(1u, lost.size());
  EXPECT_EQ("it takes nothing", lost[0].second) << "the first reason";
  EXPECT_TRUE(exchange_->peers.take_lost(~std::uint64_t{0}).empty()) << "once";
  exchange_->end_lost();
  EXPECT_EQ(1u, completed());
  exchange_->receiver.received(put_here(1, 64, 8), std::as_bytes(std::span(memory_)).first(8));
  EXPECT_EQ(0u, exchange_->peers[1].completed) << "nothing comes from it any more";
}

/// Its poster may not know of the loss yet: this rank is not to blame while the world is aborted. Later it is.
TEST_F(RemoteParts, AnswerWhatAsksALostRankUntilTheSurvivorsHaveSettled) {
  Command get = put_of(64, memory_.data(), 8);
  get.verb = Verb::get, get.answers = true;
  exchange_->give_up(1, "it has ended");
  exchange_->end_lost();
  post(get);
  exchange_->turn();
  EXPECT_EQ(1u, completed());
  EXPECT_EQ(1u, ring_.answers[0].sequence);
  EXPECT_FALSE(exchange_->peers.has_failed());
  EXPECT_FALSE(exchange_->sender.has_posted());
  exchange_->peers.note_abort(false);
  post(get);
  exchange_->turn();
  EXPECT_TRUE(exchange_->peers.has_failed());
}

TEST_F(RemoteParts, CarryOutMessagesInTheirOrder) {
  const std::uint64_t first = 1, second = 2, foreign = 3;
  exchange_->receiver.received(put_here(2, 64, 8), std::as_bytes(std::span(&second, 1)));
  EXPECT_EQ(0u, memory_[8]) << "one before it is missing";
  NetworkMessage of_others = put_here(1, 64, 8);
  of_others.world = world_secret + 1;
  exchange_->receiver.received(of_others, std::as_bytes(std::span(&foreign, 1)));
  EXPECT_EQ(0u, memory_[8]) << "of another world";
  exchange_->receiver.received(put_here(1, 64, 8), std::as_bytes(std::span(&first, 1)));
  EXPECT_EQ(2u, memory_[8]);
  EXPECT_EQ(2u, exchange_->peers[1].completed);
  exchange_->turn();
  exchange_->turn();
  const auto answers = worker_->of(MessageKind::acknowledge);
  ASSERT_EQ(1u, answers.size());
  EXPECT_EQ(2u, answers[0].message.acknowledged);
  exchange_->receiver.received(put_here(2, 64, 8), std::as_bytes(std::span(&first, 1)));
  EXPECT_NE(std::string::npos, exchange_->peers.take_failure().find("sends message 2, after 2 that were done"));
  EXPECT_EQ(2u, memory_[8]);
}

TEST_F(RemoteParts, FetchLongPayloadsToTheirDestination) {
  int parcel = 0;
  EXPECT_TRUE(exchange_->receiver.announced(put_here(1, 4096, 100'000), &parcel, 100'000));
  ASSERT_EQ(1u, worker_->fetches.count(1));
  EXPECT_EQ(context_.range + 4096, worker_->fetches[1].data());
  EXPECT_EQ(100'000u, worker_->fetches[1].size());
  EXPECT_EQ(0u, exchange_->peers[1].completed);
  exchange_->receiver.fetched(1, 1, true);
  EXPECT_EQ(1u, exchange_->peers[1].completed);
  // A put to memory that it may not write is refused, and its data are not fetched.
  EXPECT_FALSE(exchange_->receiver.announced(put_here(2, bytes - 64, 100'000), &parcel, 100'000));
  exchange_->turn();
  ASSERT_EQ(1u, worker_->of(MessageKind::refusal).size());
  EXPECT_EQ(2u, exchange_->peers[1].completed);
}

TEST_F(RemoteParts, AnswerAGetWithItsBytes) {
  memory_[3] = 42;
  NetworkMessage message = put_here(1, 24, 8);
  message.command.verb = Verb::get, message.request = 5;
  exchange_->receiver.received(message, {});
  exchange_->turn();
  const auto answers = worker_->of(MessageKind::data);
  ASSERT_EQ(1u, answers.size());
  EXPECT_EQ(5u, answers[0].message.request);
  std::uint64_t got = 0;
  ASSERT_EQ(sizeof got, answers[0].payload.size());
  std::memcpy(&got, answers[0].payload.data(), sizeof got);
  EXPECT_EQ(42u, got);
}

class RemoteBatches : public RemoteParts {
 protected:
  explicit RemoteBatches(bool is_staged = false) : RemoteParts(false, is_staged) {}
  /// A put of 9 bytes in the entry itself, a put of `long_bytes` at an address, and a signal at `signal`.
  [[nodiscard]] std::vector<BatchEntry> sample(std::uint64_t signal, std::uint64_t long_bytes = 100) const {
    return {BatchEntry::of(Verb::put_inline, 9, 64, 0x0101'0101'0101'0101, 0x02),
            BatchEntry::of(Verb::put, 0, 1024, reinterpret_cast<std::uintptr_t>(source_.data()), long_bytes),
            BatchEntry::of(Verb::store, 8, signal, 77, 0)};
  }
  void post_batch(const std::vector<BatchEntry>& entries) {
    Command batch{};
    batch.verb = Verb::batch, batch.peer = 1, batch.local = reinterpret_cast<std::uintptr_t>(entries.data());
    batch.rows = entries.size(), batch.row_bytes = sizeof(BatchEntry);
    post(batch);
    while (exchange_->sender.send_posted()) {
    }
  }
  /// Rank 1 sends the message that this rank has sent.
  void send_back(const FakeWorker::Sent& sent, std::span<const std::byte> payload) {
    NetworkMessage message = sent.message;
    message.from = 1, message.command.peer = 0, message.number = exchange_->peers[1].completed + 1;
    message.acknowledged = 0;
    exchange_->receiver.received(message, payload);
    exchange_->turn();
  }
};

TEST_F(RemoteBatches, AreOneMessage) {
  const std::vector<BatchEntry> entries = sample(4096);
  post_batch(entries);
  ASSERT_EQ(1u, worker_->sent.size());
  const FakeWorker::Sent sent = worker_->sent[0];
  EXPECT_EQ(3 * sizeof(BatchEntry) + 104, sent.payload.size());
  EXPECT_EQ(1u, reusable()) << "the message has its own copy";
  acknowledge(1);
  EXPECT_EQ(1u, completed());
  send_back(sent, sent.payload);
  EXPECT_EQ(0x0101'0101'0101'0101u, memory_[8]);
  EXPECT_EQ(2u, memory_[9]);
  EXPECT_EQ(0x05050505u, memory_[128 + 12]) << "the last 4 of 100 bytes";
  EXPECT_EQ(77u, memory_[512]);
  EXPECT_EQ(1u, exchange_->peers[1].completed);
}

TEST_F(RemoteBatches, ThatFitNoMessageAreSplit) {
  std::vector<BatchEntry> entries(most_batch_entries, sample(4096, most_batched_bytes)[1]);
  entries.back() = sample(4096)[2];
  post_batch(entries);
  std::size_t sent = 0;
  for (const FakeWorker::Sent& each : worker_->sent) {
    EXPECT_LE(each.payload.size(), most_packed_bytes);
    sent += each.message.command.rows;
  }
  EXPECT_EQ(std::size_t{most_batch_entries}, sent);
  EXPECT_EQ((most_batch_entries - 1u) / 15u, worker_->sent.size());
  acknowledge(worker_->sent.size() - 1);
  EXPECT_EQ(0u, completed());
  acknowledge(worker_->sent.size());
  EXPECT_EQ(1u, completed());
}

TEST_F(RemoteBatches, AreRefusedAsAWhole) {
  post_batch(sample(bytes));  // only the target knows that no memory is there
  const FakeWorker::Sent sent = worker_->sent.at(0);
  const std::span<const std::byte> payload = sent.payload;
  const auto refused = [&](std::span<const std::byte> as_sent) {
    exchange_->peers[1].refused_rings.clear();
    const std::size_t before = worker_->of(MessageKind::refusal).size();
    send_back(sent, as_sent);
    EXPECT_EQ(0u, memory_[8]) << "no entry has taken effect";
    const auto refusals = worker_->of(MessageKind::refusal);
    return refusals.size() == before + 1 ? text_in(refusals.back().payload) : "";
  };
  EXPECT_EQ(
      "entry 2 (store of 8 bytes, rank 0, offset 0x100000 of its slot): no memory of its peer is there (any more)",
      refused(payload));
  for (const std::size_t length : {payload.size() - 1, 3 * sizeof(BatchEntry), std::size_t{71}, std::size_t{0}})
    EXPECT_EQ("its data are not as long as its entries say", refused(payload.first(length)));
  std::vector<BatchEntry> entries = sample(4096);
  entries[1] = BatchEntry::of(Verb::get, 0, 64, 64, 8);
  post_batch(entries);
  EXPECT_NE(std::string::npos, exchange_->peers.take_failure().find("entry 1 (get of 8 x 0 bytes"));
  EXPECT_EQ(1u, worker_->of(MessageKind::command).size()) << "its sender refuses it";
}

class StagedRemoteBatches : public RemoteBatches {
 protected:
  StagedRemoteBatches() : RemoteBatches(true) {}
};

TEST_F(StagedRemoteBatches, AreSplitAtRowsAndByTheRoomOfADevice) {
  std::vector<BatchEntry> entries = sample(4096);
  for (std::uint64_t i = 1; i < 70; ++i) entries.push_back(BatchEntry::of(Verb::store, 8, 4096 + 8 * i, i, 0));
  post_batch(entries);
  exchange_->turn();  // the rows have been read
  while (exchange_->sender.send_posted()) {
  }
  std::vector<std::uint64_t> rows;
  for (const FakeWorker::Sent& each : worker_->sent)
    rows.push_back(each.message.command.verb == Verb::batch ? each.message.command.rows : 0);
  std::ranges::sort(rows);  // the message with rows was sent when its rows had been read
  EXPECT_EQ((std::vector<std::uint64_t>{0, 1, 6, 32, 32}), rows);
  std::vector<FakeWorker::Sent> all = worker_->sent;
  std::ranges::sort(all, {}, [](const FakeWorker::Sent& each) { return each.message.number; });
  for (const FakeWorker::Sent& each : all) send_back(each, each.payload);
  EXPECT_EQ(5u, exchange_->peers[1].completed);
  EXPECT_EQ(2u, memory_[9]);
  EXPECT_EQ(0x05050505u, memory_[128 + 12]);
  EXPECT_EQ(77u, memory_[512]);
  for (std::uint64_t i = 1; i < 70; ++i) EXPECT_EQ(i, memory_[512 + i]);
  acknowledge(5);
  EXPECT_EQ(1u, completed());
}

TEST_F(StagedRemoteBatches, AreCompleteWithTheirLastEntry) {
  post_batch(std::vector<BatchEntry>(2, BatchEntry::of(Verb::store, 8, 4096, 1, 0)));
  NetworkMessage message = worker_->sent.at(0).message;
  message.from = 1, message.command.peer = 0;
  exchange_->receiver.received(message, worker_->sent[0].payload);
  EXPECT_EQ(0u, exchange_->peers[1].completed) << "the device has not carried out anything";
  exchange_->turn();
  EXPECT_EQ(1u, exchange_->peers[1].completed);
  ++message.number, message.command.rows = 33;
  exchange_->receiver.received(message, std::vector<std::byte>(33 * sizeof(BatchEntry)));
  exchange_->turn();
  EXPECT_EQ("its target's device does not take so many entries at once",
            text_in(worker_->of(MessageKind::refusal).at(0).payload));
}

TEST_F(RemotePartsWithKeys, PutByAKeyOnceItHasCome) {
  constexpr std::uint64_t long_bytes = 128 << 10;
  EXPECT_EQ(", gets and long puts by memory keys (rc_fake)", exchange_->keys.uses_of(1));
  post(put_of(4096, source_.data(), long_bytes));
  exchange_->turn();
  EXPECT_TRUE(worker_->puts.empty()) << "no key has come";
  ASSERT_EQ(1u, worker_->of(MessageKind::ask_key).size());
  EXPECT_EQ(4096u, worker_->of(MessageKind::ask_key)[0].message.value);
  give_key(1, 2);
  post(put_of(4096, source_.data(), long_bytes));
  exchange_->turn();
  ASSERT_EQ(1u, worker_->puts.count(3));
  EXPECT_EQ(long_bytes, worker_->puts[3].first);
  EXPECT_EQ(0x10000u + 4096u, worker_->puts[3].second);
  EXPECT_TRUE(worker_->of(MessageKind::placed).empty()) << "the message follows the data";
  post(put_of(4096 + 1024, source_.data(), long_bytes));
  exchange_->turn();
  EXPECT_EQ(1u, worker_->puts.size()) << "it overlaps the one before";
  exchange_->receiver.received(from_peer(MessageKind::end_key, 2), {});  // of an unknown key
  exchange_->turn();
  EXPECT_EQ(1u, worker_->of(MessageKind::key_ended).size());
  NetworkMessage end = from_peer(MessageKind::end_key, 3);
  end.value = 7;
  exchange_->receiver.received(end, {});
  exchange_->turn();
  EXPECT_EQ(1u, worker_->of(MessageKind::key_ended).size()) << "a put uses it";
  exchange_->receiver.placed(1, 3, true);
  exchange_->turn();
  ASSERT_EQ(1u, worker_->of(MessageKind::placed).size());
  EXPECT_EQ(3u, worker_->of(MessageKind::placed)[0].message.number);
  EXPECT_EQ(2u, worker_->of(MessageKind::key_ended).size());
  const NetworkStatistics statistics = exchange_->keys.statistics();
  EXPECT_EQ(1u, statistics.key_hits);
  EXPECT_EQ(1u, statistics.key_misses);
  EXPECT_EQ(1u, statistics.key_overlaps);
}

TEST_F(RemotePartsWithKeys, GetByAKeyWithoutAMessage) {
  const auto get_of = [&](std::uint64_t remote) {
    Command command = put_of(remote, source_.data(), 8);
    command.verb = Verb::get, command.answers = true;
    return command;
  };
  const auto answered = [&](std::uint64_t sequence) { return ring_.answers[sequence - 1].sequence == sequence; };
  post(get_of(64));
  exchange_->turn();
  ASSERT_EQ(1u, worker_->of(MessageKind::command).size()) << "no key has come";
  ASSERT_EQ(1u, worker_->of(MessageKind::ask_key).size());
  NetworkMessage data = from_peer(MessageKind::data, 1);
  data.request = worker_->of(MessageKind::command)[0].message.request;
  exchange_->receiver.received(data, std::span(source_).first(8));
  give_key(2, 2);
  EXPECT_TRUE(answered(1));
  post(put_of(4096, source_.data(), 100));
  post(get_of(4096 + 99));
  post(get_of(4096 + 200));
  exchange_->turn();
  EXPECT_EQ(3u, worker_->of(MessageKind::command).size()) << "the get that overlaps the put follows it";
  ASSERT_EQ(1u, worker_->gets.size());
  EXPECT_EQ(source_.data(), worker_->gets[0].to.data());
  EXPECT_EQ(8u, worker_->gets[0].to.size());
  EXPECT_EQ(0x10000u + 4096u + 200u, worker_->gets[0].from);
  NetworkMessage end = from_peer(MessageKind::end_key, 3);
  end.value = 7, end.acknowledged = 4;
  exchange_->receiver.received(end, {});
  exchange_->turn();
  EXPECT_TRUE(worker_->of(MessageKind::key_ended).empty()) << "a get uses it";
  EXPECT_FALSE(answered(4));
  exchange_->receiver.got(1, worker_->gets[0].token, true);
  exchange_->turn();
  EXPECT_TRUE(answered(4));
  EXPECT_EQ(1u, worker_->of(MessageKind::key_ended).size());
}

TEST_F(RemotePartsWithKeys, AGetFromALostRankEndsOnceNothingWrites) {
  give_key(1, 0);
  Command get = put_of(64, source_.data(), 8);
  get.verb = Verb::get, get.answers = true;
  post(get);
  exchange_->turn();
  ASSERT_EQ(1u, worker_->gets.size());
  exchange_->give_up(1, "it takes nothing");
  exchange_->end_lost();
  EXPECT_EQ(0u, ring_.answers[0].sequence) << "the transport may still write to the destination";
  exchange_->receiver.got(1, worker_->gets[0].token, false);
  exchange_->end_lost();
  EXPECT_EQ(1u, ring_.answers[0].sequence);
  EXPECT_EQ(1u, completed());
}

TEST_F(RemotePartsWithKeys, TakeKeysBackBeforeMemoryGoes) {
  NetworkMessage ask = from_peer(MessageKind::ask_key, 1);
  ask.value = 4096;
  exchange_->receiver.received(ask, {});
  exchange_->turn();
  ASSERT_EQ(1u, worker_->of(MessageKind::key).size());
  EXPECT_EQ(1u, exchange_->keys.statistics().registered_pieces);
  EXPECT_EQ(std::vector<int>{1}, exchange_->keys.holders_of(context_.range));
  EXPECT_TRUE(exchange_->keys.end_keys(context_.range));
  exchange_->turn();
  ASSERT_EQ(1u, worker_->of(MessageKind::end_key).size());
  NetworkMessage ended = from_peer(MessageKind::key_ended, 2);
  ended.value = worker_->of(MessageKind::end_key)[0].message.value;
  exchange_->receiver.received(ended, {});
  EXPECT_TRUE(exchange_->keys.holders_of(context_.range).empty());
  exchange_->keys.unregister(context_.range);
  EXPECT_EQ(0u, exchange_->keys.statistics().registered_pieces);
  exchange_->keys.forget(context_.range);
  EXPECT_FALSE(exchange_->keys.end_keys(context_.range)) << "it is unknown now";
}

/// A rank asks for the first key of a piece between the look for keys and the unmapping.
TEST_F(RemotePartsWithKeys, GiveNoKeyOfMemoryThatIsAboutToGo) {
  NetworkMessage ask = from_peer(MessageKind::ask_key, 1);
  ask.value = 4096;
  EXPECT_FALSE(exchange_->keys.end_keys(context_.range)) << "no rank has asked";
  exchange_->receiver.received(ask, {});
  EXPECT_TRUE(exchange_->keys.holders_of(context_.range).empty());
  EXPECT_EQ(0, worker_->registered);
  exchange_->keys.forget(context_.range);
  ask.number = 2;
  exchange_->receiver.received(ask, {});
  EXPECT_EQ(std::vector<int>{1}, exchange_->keys.holders_of(context_.range)) << "of the memory that is there then";
}

/// The engine of a rank whose device copies, so that the engine's thread does all the work.
class StagedRemoteEngine : public RemoteParts {
 protected:
  StagedRemoteEngine() : RemoteParts(false, true, false) {}
  [[nodiscard]] std::vector<int> lost_after(std::chrono::milliseconds answer, std::chrono::milliseconds deadline);
};

/// The ranks that the engine gives up if rank 1 acknowledges a put after the time `answer`.
std::vector<int> StagedRemoteEngine::lost_after(std::chrono::milliseconds answer, std::chrono::milliseconds deadline) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  bool has_come = false;
  worker_->on_progress = [&, exchange = exchange_.get()] {
    if (Clock::now() - start < answer || std::exchange(has_come, true)) return false;
    NetworkMessage message = from_peer(MessageKind::acknowledge, 0);
    message.acknowledged = 1;
    exchange->receiver.received(message, {});
    return true;
  };
  post(put_of(64, source_.data(), 8));
  FailureEvents events;
  events.lost = [](int, const std::string&) {};
  const std::unique_ptr<Engine> engine = make_network_engine(std::move(exchange_), std::move(events));
  engine->serve(client_);
  const std::vector<int> lost = engine->settle({0, 1}, std::chrono::nanoseconds(deadline).count());
  EXPECT_EQ(lost, worker_->disconnected);
  return lost;
}

TEST_F(StagedRemoteEngine, SettlesOnceItsPeerHasDoneEverything) {
  EXPECT_EQ(std::vector<int>{}, lost_after(100ms, 1s)) << "the engine's thread does not work";
}

TEST_F(StagedRemoteEngine, WaitsForAPeerThatIsBusyUntilTheDeadline) {
  EXPECT_EQ(std::vector<int>{}, lost_after(1200ms, 20s));
}

TEST_F(StagedRemoteEngine, GivesUpAPeerThatCompletesNothingUntilTheDeadline) {
  EXPECT_EQ(std::vector<int>{1}, lost_after(20s, 300ms));
}

/// The engine of a rank whose waiting threads work, too.
class HelpedRemoteEngine : public RemoteParts {
 protected:
  HelpedRemoteEngine() : RemoteParts(false, false, false) {}
};

/// A message arrives in the last work of a waiting thread, while the engine's thread sleeps: its acknowledgement does
/// not wait until that thread wakes by itself, after 10 ms.
TEST_F(HelpedRemoteEngine, LeavesAcknowledgementsToItsThread) {
  constexpr std::size_t rounds = 20, least_soon = 10;
  const auto helper = std::this_thread::get_id();
  bool is_there = false;
  std::uint64_t number = 0;
  worker_->on_progress = [&, exchange = exchange_.get()] {
    if (std::this_thread::get_id() != helper || !std::exchange(is_there, false)) return false;
    exchange->receiver.received(put_here(++number, 64, 8), std::as_bytes(std::span(memory_)).first(8));
    return true;
  };
  const std::unique_ptr<Engine> engine = make_network_engine(std::move(exchange_), {});
  engine->serve(client_);
  std::size_t soon = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    std::this_thread::sleep_for(3ms);
    is_there = true;
    while (is_there) static_cast<void>(detail::do_wait_work());
    const auto start = std::chrono::steady_clock::now();
    while (worker_->sends.load() == round) std::this_thread::sleep_for(100us);
    if (std::chrono::steady_clock::now() - start < 5ms) ++soon;
  }
  EXPECT_LE(least_soon, soon) << "of " << rounds << " within 5 ms";
}

}  // namespace

}  // namespace beeline
