// SPDX-License-Identifier: Apache-2.0
// The threads that serve command queues: which commands they refuse, how they sleep and wake, and how they end.
#include "control/host_engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "beeline/beeline.hpp"
#include "control/engine_thread.hpp"
#include "control/thread_time.hpp"
#include "tests/support/stopwatch.hpp"
#include "tests/unit/lone_client.hpp"

namespace beeline {

using beeline_test::Stopwatch;

namespace {

/// A fixture whose queues live longer than the engines that serve them.
class Engines : public LoneClient {
 protected:
  struct Queue {
    std::unique_ptr<CommandRing> ring = std::make_unique<CommandRing>();
    std::unique_ptr<CommandTickets> tickets = std::make_unique<CommandTickets>();
    std::unique_ptr<CommandSource> source = std::make_unique<CommandReader>(*ring);
    [[nodiscard]] CommandQueue ends() const { return {ring.get(), tickets.get()}; }
  };

  /// Posts a command that no operation would post.
  static void post_raw(Queue& queue, const Command& command) {
    const std::uint64_t ticket = queue.tickets->next++;
    Command& slot = queue.ring->commands[ticket % command_ring_depth];
    constexpr std::size_t first = offsetof(Command, verb);  // the engine already reads the sequence
    std::memcpy(&slot.verb, &command.verb, sizeof command - first);
    detail::SystemAtomic<std::uint64_t>(slot.sequence).store(ticket + 1, std::memory_order_release);
  }

  Refusals refusals_;
};

constexpr Command command_of(Verb verb, std::uint8_t width, std::uint32_t peer, std::uint64_t remote) {
  Command command{};
  command.verb = verb, command.width = width, command.peer = peer, command.remote = remote;
  return command;
}
constexpr Command rows_of(std::uint64_t remote, std::uint64_t local, std::uint64_t rows, std::uint64_t row_bytes,
                          std::uint64_t stride) {
  Command command = command_of(Verb::put, 0, 0, remote);
  command.local = local, command.rows = rows, command.row_bytes = row_bytes;
  command.remote_stride = command.local_stride = stride;
  return command;
}

constexpr Command put_signal_of(std::uint8_t width, std::uint64_t remote, std::uint64_t signal) {
  Command command = command_of(Verb::put_inline_signal, width, 0, remote);
  command.local = 77, command.remote_stride = signal, command.local_stride = 1;
  return command;
}

TEST(Refusals, TheFirstIsKeptUntilItIsTaken) {
  using Texts = std::vector<std::string>;
  Refusals refusals;
  const int queue = 0, other = 0;
  refusals.add(&queue, "first");
  refusals.add(&queue, "second");
  refusals.add(&queue, "third", true);
  refusals.add(&other, "of a failure", true);
  EXPECT_EQ("first", refusals.of(&queue));
  EXPECT_EQ(Texts{"first"}, refusals.take());
  refusals.add(&queue, "later");
  EXPECT_EQ("later", refusals.of(&queue));
  EXPECT_EQ(Texts{"later"}, refusals.take());
  EXPECT_EQ(Texts{}, refusals.take());
  refusals.add(&queue, "of a queue that ends");
  refusals.forget(&queue);
  EXPECT_EQ(Texts{}, refusals.take());
  EXPECT_EQ("of a failure", refusals.of(&other));
}

TEST_F(Engines, RefuseWhatNoPosterMayWant) {
  HostEngine engine(client_, {});
  constexpr std::uint64_t all = ~std::uint64_t{0}, slot = std::uint64_t{1} << min_slot_shift;
  const std::pair<Command, const char*> bad[] = {
      {command_of(static_cast<Verb>(77), 8, 0, 0), "verb"},
      {command_of(Verb::store, 8, 1, 0), "no such rank"},
      {command_of(Verb::store, 8, 0, slot), "not in its peer's memory"},
      {command_of(Verb::store, 8, 0, bytes), "no memory of its peer"},
      {command_of(Verb::store, 3, 0, 0), "width"},
      {command_of(Verb::store, 8, 0, 4), "aligned"},
      {command_of(Verb::add, 2, 0, 0), "width"},
      {command_of(Verb::put_inline, 41, 0, 0), "so many bytes"},
      {put_signal_of(25, 0, 64), "so many bytes"},
      {put_signal_of(8, 0, 60), "aligned"},
      {put_signal_of(8, 0, bytes), "no memory of its peer"},
      {put_signal_of(8, bytes, 64), "no memory of its peer"},
      {rows_of(0, 4096, 1, 0, 0), "no bytes"},
      {rows_of(0, 4096, 3, 8, all / 2), "address space"},
      {rows_of(0, 4096, 1, all, 0), "address space"},
      {rows_of(0, 4096, 1, 64, 0), "not there"},
      {rows_of(64, reinterpret_cast<std::uintptr_t>(memory_.data()), 1, 128, 0), "overlap"},
  };
  std::uint64_t word = 5;
  for (const auto& [command, reason] : bad) {
    Queue queue;
    engine.add(*queue.source);
    post_raw(queue, command);
    EXPECT_EQ(Status::ok, post_put(Thread{}, context_, memory_.data(), &word, 1, 0, queue.ends()));
    EXPECT_EQ(Status::invalid_argument, quiet(Thread{}, context_, queue.ends()));
    EXPECT_EQ(Status::invalid_argument, flush(Thread{}, context_, queue.ends()));
    EXPECT_EQ(0u, memory_[0]) << "a command behind one that was refused is refused";
    EXPECT_EQ(0u, memory_[8]);
    const std::string text = engine.refusals().of(queue.source.get());
    EXPECT_NE(std::string::npos, text.find(reason)) << text;
    EXPECT_NE(std::string::npos, text.find("rank 0's engine refused command 1 of a queue")) << text;
    EXPECT_EQ(text, last_refusal_);
    EXPECT_EQ(std::vector{text}, engine.refusals().take());
    EXPECT_EQ(std::vector<std::string>(), engine.refusals().take()) << "each is told once";
    engine.remove(*queue.source);
  }
  EXPECT_EQ(2 * std::size(bad), engine.statistics().refused);
  Queue other;
  engine.add(*other.source);
  EXPECT_EQ(Status::ok, post_put(Thread{}, context_, memory_.data(), &word, 1, 0, other.ends()));
  EXPECT_EQ(Status::ok, quiet(Thread{}, context_, other.ends()));
  EXPECT_EQ(5u, memory_[0]) << "other queues go on";
  engine.remove(*other.source);
  EXPECT_FALSE(has_failed_);
}

/// The end of a large transfer is published when it is complete, and other queues are served between two transfers:
/// here a queue that gets its command while the third transfer is begun.
TEST_F(Engines, LargeTransfersAreToldOneByOne) {
  constexpr std::size_t half = bytes / 2, last_word = bytes - 8;
  Queue large, small;
  std::uint64_t word = 5, looks = 0, done_before_small = ~std::uint64_t{0};
  client_.address_of = [&](std::uint32_t, std::uint64_t offset) {
    if (offset == last_word)
      done_before_small = detail::load_acquired(large.ring->completed.value);
    else if (++looks == 3)
      EXPECT_EQ(Status::ok, post_put(Thread{}, context_, &memory_.back(), &word, 1, 0, small.ends()));
    return context_.range + offset;
  };
  auto* const memory = reinterpret_cast<std::byte*>(memory_.data());
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(Status::ok, post_put(Thread{}, context_, memory + half, memory, half - 8, 0, large.ends()));
  HostEngine engine(client_, {});
  for (Queue* queue : {&small, &large}) engine.add(*queue->source);
  ASSERT_EQ(Status::ok, quiet(Thread{}, context_, large.ends()));
  ASSERT_EQ(Status::ok, quiet(Thread{}, context_, small.ends()));
  EXPECT_EQ(3u, done_before_small);
  EXPECT_EQ(5u, memory_.back());
}

/// A poster would take the answer of a refused command for a value: the world fails.
TEST_F(Engines, FailWhereARefusedCommandWantsAnAnswer) {
  Queue queue;
  HostEngine engine(client_, {});
  engine.add(*queue.source);
  Command command = command_of(Verb::add, 8, 1, 0);
  command.answers = true;
  post_raw(queue, command);
  const Stopwatch watch;
  while (!has_failed_) ASSERT_LT(watch.seconds(), 60);
  EXPECT_NE(std::string::npos, failure_.find("no such rank")) << failure_;
}

/// A post to a full queue returns a status, and freed cells are used again.
TEST_F(Engines, AFullQueueSaysSo) {
  Queue queue;
  std::uint64_t word = 1;
  const auto put = [&](Timeout timeout) {
    return post_put(Thread{}, context_, memory_.data(), &word, 1, 0, queue.ends(), timeout);
  };
  for (std::uint32_t i = 0; i < command_ring_depth; ++i) ASSERT_EQ(Status::ok, put(Timeout::test()));
  EXPECT_EQ(Status::timeout, put(Timeout::test()));
  EXPECT_EQ(Status::timeout, put(Timeout{2'000'000}));
  EXPECT_EQ(Status::timeout, quiet(Thread{}, context_, queue.ends(), Timeout{2'000'000}));
  EXPECT_EQ(2u, queue.tickets->waits);
  EXPECT_EQ(0u, memory_[0]);
  HostEngine engine(client_, {});
  engine.add(*queue.source);
  EXPECT_EQ(Status::ok, put(Timeout::none()));
  EXPECT_EQ(Status::ok, quiet(Thread{}, context_, queue.ends()));
  EXPECT_EQ(1u, memory_[0]);
  EXPECT_EQ(command_ring_depth + 1, engine.statistics().commands);
  EXPECT_EQ(0u, claims_) << "nothing is recorded";
}

/// A poster that dies before it has written its command stops its queue; waits on it end, and other queues continue.
TEST_F(Engines, HalfACommandStopsItsQueueAlone) {
  Queue stopped, other;
  HostEngine engine(client_, {});
  for (Queue* queue : {&stopped, &other}) engine.add(*queue->source);
  ++stopped.tickets->next;  // claimed, and never written
  context_.deadline_ns = 50'000'000;
  std::uint64_t word = 9;
  EXPECT_EQ(Status::ok, post_put(Thread{}, context_, memory_.data(), &word, 1, 0, stopped.ends()));
  EXPECT_EQ(Status::ok, post_put(Thread{}, context_, memory_.data() + 1, &word, 1, 0, other.ends()));
  EXPECT_EQ(Status::ok, quiet(Thread{}, context_, other.ends()));
  EXPECT_EQ(9u, memory_[1]);
  EXPECT_EQ(Status::deadline, quiet(Thread{}, context_, stopped.ends()));
  EXPECT_EQ(0u, memory_[0]);
  EXPECT_EQ(2u, records_[0].expected);
  EXPECT_EQ(0u, records_[0].observed);
}

/// A thread sleeps while it is idle, and a post wakes it.
TEST_F(Engines, SleepUntilAPostWakesThem) {
  Queue queue;
  HostEngine engine(client_, {});
  engine.add(*queue.source);
  for (std::uint64_t round = 1; round <= 5; ++round) {
    const std::uint64_t slept = engine.statistics().sleeps;
    const Stopwatch watch;
    while (engine.statistics().sleeps == slept) ASSERT_LT(watch.seconds(), 60);
    EXPECT_EQ(Status::ok, post_put(Thread{}, context_, memory_.data(), &round, 1, 0, queue.ends()));
    EXPECT_EQ(Status::ok, quiet(Thread{}, context_, queue.ends()));
    EXPECT_EQ(round, memory_[0]);
  }
}

/// The thread of a GPU rank, which no post wakes, polls: not more often than its period says, and a poll takes little
/// CPU time compared with a sleep, which a second thread measures.
TEST_F(Engines, ThatNobodyWakesPollSeldom) {
  client_.device.kind = DeviceKind::gpu;
  for (const int poll_us : {100, 1000}) {
    Queue queue;
    EngineThread engine(client_, refusals_, {.poll_us = poll_us, .make = make_host_worker});
    engine.add(*queue.source);
    const Stopwatch watch;
    while (engine.statistics().sleeps == 0) ASSERT_LT(watch.seconds(), 60);
    std::atomic<bool> stops{false};
    std::atomic<int> sleeps{0};
    std::thread sleeper([&] {
      for (; !stops; ++sleeps) std::this_thread::sleep_for(std::chrono::microseconds(poll_us));
    });
    const EngineStatistics before = engine.statistics();
    const double start = watch.seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const EngineStatistics after = engine.statistics();
    const double seconds = watch.seconds() - start, bare = cpu_seconds_of(sleeper) / std::max(1, sleeps.load());
    stops = true;
    sleeper.join();
    const auto polls = static_cast<double>(after.sleeps - before.sleeps);
    EXPECT_LE(polls, seconds * 1e6 / poll_us + 2) << poll_us << " us";
    EXPECT_LT(after.cpu_s - before.cpu_s, std::max(1.0, polls) * (4 * bare + 20e-6)) << poll_us << " us";
    EXPECT_TRUE(engine.remove(*queue.source));
  }
}

TEST_F(Engines, ServeThousandsOfQueues) {
  std::vector<Queue> queues(2000);
  HostEngine engine(client_, {.threads = 3});
  for (Queue& queue : queues) engine.add(*queue.source);
  for (std::size_t i = 0; i < queues.size(); ++i) {
    const std::uint64_t value = i + 1;
    ASSERT_EQ(Status::ok, post_put(Thread{}, context_, memory_.data() + i, &value, 1, 0, queues[i].ends()));
  }
  for (std::size_t i = 0; i < queues.size(); ++i) {
    ASSERT_EQ(Status::ok, quiet(Thread{}, context_, queues[i].ends()));
    ASSERT_EQ(i + 1, memory_[i]);
  }
  EXPECT_EQ(queues.size(), engine.statistics().commands);
}

/// Queues are added and removed while others are used.
TEST_F(Engines, QueuesComeAndGo) {
  std::atomic<bool> stops{false};
  Queue steady;
  HostEngine engine(client_, {.threads = 2});
  engine.add(*steady.source);
  std::thread poster([&] {
    for (std::uint64_t i = 1; !stops; ++i) {
      EXPECT_EQ(Status::ok, post_put(Thread{}, context_, memory_.data(), &i, 1, 0, steady.ends()));
      EXPECT_EQ(Status::ok, quiet(Thread{}, context_, steady.ends()));
      EXPECT_EQ(i, memory_[0]);
    }
  });
  for (std::uint64_t round = 1; round <= 200; ++round) {
    Queue passing;
    engine.add(*passing.source);
    EXPECT_EQ(Status::ok, post_put(Thread{}, context_, memory_.data() + 1, &round, 1, 0, passing.ends()));
    if (round % 2 == 0) {
      EXPECT_EQ(Status::ok, quiet(Thread{}, context_, passing.ends()));
      EXPECT_EQ(round, memory_[1]);
    }
    engine.remove(*passing.source);
  }
  stops = true;
  poster.join();
}

/// A device that completes its submissions when the test says so.
class LateWorker final : public CommandWorker {
 public:
  struct Device {
    std::atomic<std::uint64_t> begun{0}, behind_others{0};  ///< commands; those begun after pending ones
    std::atomic<std::uint64_t> submitted{0}, ended{0};      ///< submissions
    std::atomic<std::uint64_t> told{0};                     ///< posters to which it reports the end
    std::atomic<std::uint64_t> stored{0};                   ///< words that the CPU stored instead of it
  };
  explicit LateWorker(Device& device) : device_(device) {}

  void begin_ring(bool is_under_way, bool*) override { is_behind_ = is_under_way; }
  bool end_ring(std::uint64_t* told, std::uint64_t) override {
    device_.told += told != nullptr ? 1 : 0;
    return true;
  }
  std::uint64_t submit() override { return device_.submitted = ++submitted_; }
  bool over(std::uint64_t submission) override { return device_.ended >= submission; }
  bool over() override { return over(submitted_); }
  std::uint64_t cpu_stores() const override { return device_.stored; }

 private:
  void put_inline(const Command& command, std::byte* remote, std::size_t slot) override {
    device_.behind_others += is_behind_ ? 1 : 0;
    CommandWorker::put_inline(command, remote, slot);
    ++device_.begun;
  }

  Device& device_;
  bool is_behind_ = false;
  std::uint64_t submitted_ = 0;
};

/// The thread begins a queue's next commands while a device still works on earlier ones, up to a number of batches, and
/// completion is published in order.
TEST_F(Engines, BeginWhileOthersAreUnderWay) {
  LateWorker::Device device;
  Queue busy, other;
  const auto until = [](auto condition) {
    const Stopwatch watch;
    while (!condition() && watch.seconds() < 10) std::this_thread::yield();
    return condition();
  };
  const auto post = [&](Queue& queue, std::uint64_t value) {
    ASSERT_EQ(Status::ok, post_put(Thread{}, context_, memory_.data(), &value, 1, 0, queue.ends()));
  };
  EngineThread engine(client_, refusals_, {.poll_us = 0, .make = [&](const EngineClient&) {
                                             return std::make_unique<LateWorker>(device);
                                           }});
  for (Queue* queue : {&busy, &other}) engine.add(*queue->source);
  for (std::uint64_t i = 1; i <= most_word_batches; ++i) {
    post(busy, i);
    ASSERT_TRUE(until([&] { return device.begun == i && device.submitted == i; }));  // the next is in another batch
  }
  EXPECT_EQ(most_word_batches - 1, device.behind_others);
  const auto completed = [](const Queue& queue) { return detail::load_acquired(queue.ring->completed.value); };
  for (Queue* queue : {&busy, &other}) post(*queue, 77);
  EXPECT_TRUE(until([&] { return device.begun == most_word_batches + 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(most_word_batches + 1, device.begun) << "where a queue's first words go is not known";
  EXPECT_EQ(0u, completed(busy));
  device.ended = most_word_batches;
  ASSERT_TRUE(until([&] { return device.begun == most_word_batches + 2; }));
  EXPECT_EQ(most_word_batches, completed(busy));
  EXPECT_EQ(0u, completed(other));
  device.ended = most_word_batches + 2;
  for (Queue* queue : {&busy, &other}) EXPECT_EQ(Status::ok, quiet(Thread{}, context_, queue->ends()));
  EXPECT_EQ(most_word_batches + 1, completed(busy));
  for (Queue* queue : {&busy, &other}) EXPECT_TRUE(engine.remove(*queue->source));
}

/// A device without other work reports the end to posters. If it has other work, the engine's thread does.
TEST_F(Engines, TellPostersByADeviceThatHasNothingElseToDo) {
  LateWorker::Device device;
  std::uint64_t told = 0;
  Queue queue;
  EngineThread engine(client_, refusals_, {.poll_us = 0, .make = [&](const EngineClient&) {
                                             return std::make_unique<LateWorker>(device);
                                           }});
  engine.add(*queue.source, &told);
  const auto post = [&](std::uint64_t submissions) {
    ASSERT_EQ(Status::ok, post_put(Thread{}, context_, memory_.data(), &submissions, 1, 0, queue.ends()));
    const Stopwatch watch;
    while (device.submitted < submissions) ASSERT_LT(watch.seconds(), 60);
  };
  post(1);
  EXPECT_EQ(1u, device.told);
  post(2);
  EXPECT_EQ(1u, device.told) << "the first is under way";
  device.stored = 3;
  EXPECT_EQ(3u, engine.statistics().cpu_stores);
  device.ended = 2;
  EXPECT_EQ(Status::ok, quiet(Thread{}, context_, queue.ends()));
  post(3);
  EXPECT_EQ(2u, device.told);
  device.ended = 3;
  EXPECT_EQ(Status::ok, quiet(Thread{}, context_, queue.ends()));
  EXPECT_TRUE(engine.remove(*queue.source));
}

/// For words of a GPU rank the stream reports completion to posters, also after other commands that are pending.
TEST_F(Engines, TellPostersOfWordsBehindOthers) {
  client_.device.kind = DeviceKind::gpu;
  LateWorker::Device device;
  std::uint64_t told = 0;
  Queue queue;
  EngineThread engine(client_, refusals_, {.poll_us = 0, .make = [&](const EngineClient&) {
                                             return std::make_unique<LateWorker>(device);
                                           }});
  engine.add(*queue.source, &told);
  for (std::uint64_t posts = 1; posts <= most_word_batches; ++posts) {
    ASSERT_EQ(Status::ok, post_put(Thread{}, context_, memory_.data(), &posts, 1, 0, queue.ends()));
    const Stopwatch watch;
    while (device.submitted < posts) ASSERT_LT(watch.seconds(), 60);
    EXPECT_EQ(posts, device.told);
  }
  device.ended = most_word_batches;
  EXPECT_EQ(Status::ok, quiet(Thread{}, context_, queue.ends()));
  EXPECT_TRUE(engine.remove(*queue.source));
}

/// If a device never completes a submission, its queue is given up at the deadline.
TEST_F(Engines, GiveAQueueUpWhoseDeviceStands) {
  LateWorker::Device device;
  context_.deadline_ns = client_.context.deadline_ns = 50'000'000;
  Queue queue;
  const std::uint64_t value = 7;
  EngineThread engine(client_, refusals_,
                      {.make = [&](const EngineClient&) { return std::make_unique<LateWorker>(device); }});
  engine.add(*queue.source);
  ASSERT_EQ(Status::ok, post_put(Thread{}, context_, memory_.data(), &value, 1, 0, queue.ends()));
  EXPECT_EQ(Status::deadline, quiet(Thread{}, context_, queue.ends()));
  EXPECT_TRUE(engine.remove(*queue.source));
  device.ended = 1;  // no poster learns of this
  engine.add(*queue.source);
  EXPECT_TRUE(engine.remove(*queue.source));
  EXPECT_EQ(0u, detail::load_acquired(queue.ring->completed.value));
}

/// An engine that holds commands until the test carries them out.
class HeldNetwork final : public Engine {
 public:
  PeerRoute route_to(int) const override { return {PeerAccess::engine, "a test says so"}; }
  void serve(const EngineClient&) override {}
  void open_queue(CarriedQueue& queue) override { queue_ = &queue; }
  void close_queue(CarriedQueue&) override { is_closed_ = true; }

  CarriedQueue& opened() const {
    while (queue_ == nullptr) std::this_thread::yield();
    return *queue_;
  }
  std::atomic<bool> is_closed_{false};

 private:
  std::atomic<CarriedQueue*> queue_{nullptr};
};

constexpr Timeout soon{2'000'000};

/// Waits for the next command of a ring.
Command next_of(CommandReader& reader) {
  Command command{};
  const Stopwatch watch;
  while (!reader.take(command) && watch.seconds() < 10) std::this_thread::yield();
  reader.release_slots();
  return command;
}

TEST_F(Engines, HandOverWhatGoesToOtherNodes) {
  HeldNetwork network;
  client_.network = &network;
  client_.is_remote = [](std::uint32_t peer) { return peer == 1; };
  client_.ranks = 2;
  {
    HostEngine engine(client_, {});
    Queue queue;
    engine.add(*queue.source);
    Command near = command_of(Verb::store, 8, 0, 8);
    near.local = 3;
    post_raw(queue, near);
    EXPECT_EQ(Status::ok, quiet(Thread{}, context_, queue.ends()));
    Command far = put_signal_of(8, 16, 64);
    far.peer = 1;
    post_raw(queue, far);
    near.local = 4;
    post_raw(queue, near);
    CarriedQueue& carried = network.opened();
    CommandReader reader(carried.ring);
    const Command first = next_of(reader);
    EXPECT_EQ(Verb::put_inline_signal, first.verb);
    EXPECT_EQ(16u, first.remote);
    while (detail::load_acquired(memory_[1]) != 4) std::this_thread::yield();  // commands to other ranks do not wait
    EXPECT_EQ(Status::timeout, flush(Thread{}, context_, queue.ends(), soon));
    reader.release_sources(first);
    carried.has_grown();
    EXPECT_EQ(Status::ok, flush(Thread{}, context_, queue.ends()));
    EXPECT_EQ(Status::timeout, quiet(Thread{}, context_, queue.ends(), soon));
    reader.complete(first);
    carried.has_grown();
    EXPECT_EQ(Status::ok, quiet(Thread{}, context_, queue.ends()));

    Command bad = command_of(Verb::store, 8, 1, 8);
    for (int i = 0; i < 2; ++i) post_raw(queue, bad);
    const Command refused = next_of(reader), second = next_of(reader);
    carried.refused(refused.sequence, "a test says no");
    reader.release_sources(DoneCount::of(second.sequence, true));
    reader.complete(DoneCount::of(second.sequence, true));
    carried.has_grown();
    EXPECT_EQ(Status::invalid_argument, quiet(Thread{}, context_, queue.ends()));
    EXPECT_EQ(2u, engine.statistics().refused);
    EXPECT_EQ(std::string("rank 0's engine refused command 4 of a queue (store of 8 bytes, rank 1, offset 0x8 of its "
                          "slot): a test says no"),
              engine.refusals().of(queue.source.get()));
    post_raw(queue, near);
    EXPECT_EQ(Status::invalid_argument, quiet(Thread{}, context_, queue.ends()));
    engine.remove(*queue.source);
    EXPECT_TRUE(network.is_closed_);
  }
  EXPECT_FALSE(has_failed_);
}

TEST_F(Engines, CheckWhatGoesToOtherNodes) {
  HeldNetwork network;
  client_.network = &network;
  client_.is_remote = [](std::uint32_t peer) { return peer == 1; };
  client_.ranks = 2;
  HostEngine engine(client_, {});
  constexpr std::uint64_t slot = std::uint64_t{1} << min_slot_shift;
  std::pair<Command, const char*> bad[] = {{command_of(Verb::store, 8, 2, 0), "no such rank"},
                                           {command_of(Verb::store, 8, 1, slot), "not in its peer's memory"},
                                           {command_of(Verb::add, 2, 1, 0), "width"},
                                           {put_signal_of(25, 0, 64), "so many bytes"},
                                           {put_signal_of(8, 0, slot), "not in its peer's memory"},
                                           {rows_of(0, 4096, 1, 0, 0), "no bytes"}};
  for (auto& [command, reason] : bad) {
    if (command.peer == 0) command.peer = 1;
    Queue queue;
    engine.add(*queue.source);
    post_raw(queue, command);
    EXPECT_EQ(Status::invalid_argument, quiet(Thread{}, context_, queue.ends()));
    EXPECT_NE(std::string::npos, engine.refusals().of(queue.source.get()).find(reason))
        << engine.refusals().of(queue.source.get());
    engine.remove(*queue.source);
  }
}

TEST_F(Engines, RefuseACoreThatIsNot) {
  EXPECT_THROW(HostEngine(client_, {.cores = {1 << 20}}), Error);
  EXPECT_NO_THROW(HostEngine(client_, {.threads = 2, .poll_us = 0, .cores = {0}}));
}

}  // namespace

}  // namespace beeline
