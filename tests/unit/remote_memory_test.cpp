// SPDX-License-Identifier: Apache-2.0
// Memory of a rank that messages to and from other nodes use, while other threads unmap it or close queues.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/remote_parts.hpp"
#include "transports/network_engine.hpp"

namespace beeline {

namespace {

using namespace std::chrono_literals;

constexpr std::int64_t soon_ns = 1'000'000;

/// Whether nothing holds memory.
bool is_free(MemoryUsers& users) {
  try {
    const MemoryUsers::NoHolds no_holds(users, soon_ns);
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(Status::deadline, error.code());
    return false;
  }
}

/// Memory of rank 0 that belongs to no heap, and that rank 1 reads.
class RemoteReads : public RemoteParts {
 protected:
  RemoteReads() { client_.context.heap_end = 0; }
  void ask_for(std::uint64_t row_bytes) {
    memory_[0] = 42;
    NetworkMessage message = put_here(1, 0, row_bytes);
    message.command.verb = Verb::get;
    exchange_->receiver.received(message, {});
  }
  [[nodiscard]] std::uint64_t answered() {
    exchange_->turn();
    const auto answers = worker_->of(MessageKind::data);
    std::uint64_t first = 0;
    if (answers.size() == 1) std::memcpy(&first, answers[0].payload.data(), sizeof first);
    return first;
  }
};

TEST_F(RemoteReads, OfLongRowsKeepThemMappedUntilTheyAreSent) {
  ask_for(100'000);
  EXPECT_FALSE(is_free(users_)) << "the answer is not sent yet";
  EXPECT_EQ(42u, answered());
  EXPECT_TRUE(is_free(users_));
}

TEST_F(RemoteReads, AreCopiedWhileAThreadIsAboutToUnmap) {
  std::optional<MemoryUsers::NoHolds> unmapping(std::in_place, users_, soon_ns);
  ask_for(100'000);
  memory_[0] = 0;  // as if it were unmapped before the answer is sent
  EXPECT_EQ(42u, answered());
  unmapping.reset();
  EXPECT_TRUE(is_free(users_));
}

TEST_F(RemoteReads, OfHeapsHoldNothing) {
  client_.context.heap_end = bytes;
  ask_for(100'000);
  EXPECT_TRUE(is_free(users_));
  EXPECT_EQ(42u, answered());
}

/// A queue of rank 0 that ends before an answer of rank 1 has arrived.
class ClosedRemoteQueue : public RemoteParts, CarriedQueue {
 protected:
  ClosedRemoteQueue() : CarriedQueue(queue_memory_) {
    exchange_->sender.open(static_cast<CarriedQueue&>(*this));
    Command get = put_of(64, memory_.data(), 8);
    get.verb = Verb::get, get.sequence = 1;
    ring.commands[0] = get;
    exchange_->turn();
    request_ = worker_->of(MessageKind::command).at(0).message.request;
    exchange_->sender.close(*this);
  }
  void refused(std::uint64_t, const std::string& reason) noexcept override { ADD_FAILURE() << reason; }
  void has_grown() noexcept override {}
  void answer(MessageKind kind, std::span<const std::byte> payload) {
    NetworkMessage message = from_peer(kind, 1);
    message.request = request_, message.acknowledged = 1, message.refusals = kind == MessageKind::refusal ? 1 : 0;
    exchange_->receiver.received(message, payload);
    exchange_->turn();
  }

  CommandRing queue_memory_{};
  std::uint32_t request_ = 0;
};

TEST_F(ClosedRemoteQueue, DropsItsAnswers) {
  const std::uint64_t value = 7;
  answer(MessageKind::data, std::as_bytes(std::span(&value, 1)));
  EXPECT_EQ("", exchange_->peers.take_failure());
  EXPECT_EQ(0u, memory_[0]) << "nobody expects it any more";
  EXPECT_TRUE(exchange_->sender.is_settled(1)) << "no answer is waited for";
}

TEST_F(ClosedRemoteQueue, DropsRefusals) {
  answer(MessageKind::refusal, std::as_bytes(std::span("no")));
  EXPECT_EQ("", exchange_->peers.take_failure());
  EXPECT_TRUE(exchange_->sender.is_settled(1));
}

/// The engine of a rank whose kernels do not see the abort of the world at once.
class AbortedRemoteEngine : public RemoteParts {
 protected:
  AbortedRemoteEngine() : RemoteParts(false, true, false) {
    client_.fail = [this](const std::string&) { has_failed_ = true; };
  }
  /// Makes an engine that has lost rank 1, and aborts the world.
  [[nodiscard]] std::unique_ptr<Engine> make_aborted() {
    FailureEvents events;
    events.members_to_notify = [](std::uint32_t) { return std::vector<int>(); };
    events.cause = [](std::uint32_t) { return std::string(); };
    events.lost = [](int, const std::string&) {};
    events.kernels_see_abort = [this] {
      was_asked_ = true;
      return is_seen_.load();
    };
    exchange_->peers.lose(1, "it has ended");
    std::unique_ptr<Engine> engine = make_network_engine(std::move(exchange_), std::move(events));
    engine->serve(client_);
    detail::SystemAtomic<std::uint64_t>(abort_words_[0]).store(abort_word(1), std::memory_order_release);
    return engine;
  }
  /// Asks rank 1 for a word, while the engine's thread may look at the ring.
  void fetch() {
    Command command = put_of(64, nullptr, 0);
    command.verb = Verb::add, command.width = 8, command.answers = true;
    Command& slot = ring_.commands[posted_];
    std::memcpy(&slot.verb, &command.verb, sizeof command - offsetof(Command, verb));
    detail::SystemAtomic<std::uint64_t>(slot.sequence).store(++posted_, std::memory_order_release);
  }
  [[nodiscard]] bool is_answered() {
    const detail::SystemAtomic<std::uint64_t> sequence(ring_.answers[posted_ - 1].sequence);
    return sequence.load(std::memory_order_acquire) == posted_;
  }
  template <class Condition>
  [[nodiscard]] static bool comes_true(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
    return condition();
  }

  std::atomic<bool> is_seen_{false}, was_asked_{false}, has_failed_{false};
};

TEST_F(AbortedRemoteEngine, AnswersWithoutAValueOnceKernelsSeeTheAbort) {
  fetch();
  const std::unique_ptr<Engine> engine = make_aborted();
  EXPECT_TRUE(comes_true([&] { return was_asked_.load(); }));
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(is_answered()) << "the kernel would take it for a value";
  is_seen_ = true;
  EXPECT_TRUE(comes_true([&] { return is_answered(); }));
  EXPECT_FALSE(has_failed_);
}

/// The word of the abort is cleared after the survivors have settled.
TEST_F(AbortedRemoteEngine, AnswersNothingWithoutAValueOnceTheSurvivorsHaveSettled) {
  is_seen_ = true;
  fetch();
  const std::unique_ptr<Engine> engine = make_aborted();
  EXPECT_TRUE(comes_true([&] { return is_answered(); }));
  engine->forget_failures();
  std::this_thread::sleep_for(20ms);
  fetch();
  EXPECT_TRUE(comes_true([&] { return has_failed_.load(); }));
  EXPECT_FALSE(is_answered()) << "no abort says that the value is missing";
}

}  // namespace

}  // namespace beeline
