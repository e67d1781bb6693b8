// SPDX-License-Identifier: Apache-2.0
// The block that serves queues of a device engine in leases: each lease continues from the state in memory alone.
#include "control/service_block.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <vector>

#include "beeline/control/trigger.hpp"
#include "control/engine_thread.hpp"
#include "tests/unit/lone_context.hpp"

namespace beeline {

namespace {

/// The only rank of a world, and a block of one thread that serves its queue when a test calls `lease`.
class ServiceBlock : public LoneContext {
 protected:
  ServiceBlock() {
    context_.range = reinterpret_cast<std::byte*>(memory_.data());
    context_.slots = context_.places = 1;
    context_.heap_end = bytes;
    service_.rings = ring_.get(), service_.served = &served_, service_.forwarded = &forwarded_,
    service_.pieces = &piece_, service_.piece_count = service_.queues = service_.ranks = 1;
    service_.lease.wanted = &wanted_;
  }

  /// Runs one lease of so many rounds. Returns whether it asks for the next.
  bool lease(int rounds) {
    wanted_ = 0;
    ServiceThread thread(service_, context_);
    thread.begin(0, 1);
    for (int i = 0; i < rounds; ++i) {
      const ServiceThread::Round round = thread.take_commands(0, 1);
      if (round.is_moving) thread.move(Thread{});
      if (round.is_handed) break;
    }
    thread.end(0, 1);
    return wanted_ != 0;
  }
  [[nodiscard]] CommandQueue queue() { return {ring_.get(), tickets_.get(), &wanted_}; }
  [[nodiscard]] Status is_quiet() { return quiet(Thread{}, context_, queue(), Timeout::test()); }
  [[nodiscard]] std::byte* at(std::size_t offset) { return reinterpret_cast<std::byte*>(memory_.data()) + offset; }
  Status put(std::size_t to, const void* from, std::size_t count) {
    return post_put(Thread{}, context_, at(to), static_cast<const std::byte*>(from), count, 0, queue());
  }
  void answer(std::uint64_t refused) {
    forwarded_.refused = refused;
    forwarded_.answered = forwarded_.number;
  }
  /// The command that was handed over last.
  [[nodiscard]] const Command& handed() { return forwarded_.cell(forwarded_.number); }

  static constexpr std::size_t bytes = std::size_t{4} << 20;
  std::vector<std::uint64_t> memory_ = std::vector<std::uint64_t>(bytes / 8);
  std::unique_ptr<CommandRing> ring_ = std::make_unique<CommandRing>();
  std::unique_ptr<CommandTickets> tickets_ = std::make_unique<CommandTickets>();
  ServedRing served_{};
  ForwardedCommands forwarded_{};
  ReachablePiece piece_{reinterpret_cast<std::uintptr_t>(memory_.data()), bytes};
  std::uint64_t wanted_ = 0;
  Bell bell_;
  Service service_{};
};

TEST_F(ServiceBlock, DoesWordsInTheirOrder) {
  std::uint64_t value = 5;
  ASSERT_EQ(Status::ok, put(0, &value, sizeof value));
  ASSERT_EQ(Status::ok, post_atomic(context_, Verb::add, memory_.data(), 3, 0, queue()));
  ASSERT_EQ(Status::ok, post_signal(Thread{}, context_, memory_.data() + 1, 7, 0, queue()));
  EXPECT_EQ(Status::timeout, is_quiet());
  EXPECT_FALSE(lease(1));
  EXPECT_EQ(Status::ok, is_quiet());
  EXPECT_EQ(8u, memory_[0]);
  EXPECT_EQ(7u, memory_[1]);
  EXPECT_EQ(3u, served_.deepest);
}

/// Kernels of several GPUs have no atomics in host memory, here the upper half: a thread of the host changes its words.
TEST_F(ServiceBlock, HandsOverAtomicsThatKernelsLack) {
  context_.guarded_offsets = bytes / 2;
  std::uint64_t* const guarded = memory_.data() + bytes / 16;
  ASSERT_EQ(Status::ok, post_atomic(context_, Verb::add, memory_.data(), 3, 0, queue()));
  ASSERT_EQ(Status::ok, post_signal(Thread{}, context_, guarded + 1, 7, 0, queue()));
  ASSERT_EQ(Status::ok, post_atomic(context_, Verb::add, guarded, 3, 0, queue()));
  EXPECT_TRUE(lease(5));
  EXPECT_EQ(3u, memory_[0]);
  EXPECT_EQ(7u, guarded[1]);
  EXPECT_EQ(0u, guarded[0]);
  EXPECT_EQ(3u, handed().sequence);
  EXPECT_EQ(Verb::add, handed().verb);
  answer(0);
  EXPECT_FALSE(lease(5));
  EXPECT_EQ(Status::ok, is_quiet());
}

/// Words travel in the command; larger puts are moved, and their signals follow.
TEST_F(ServiceBlock, DoesPutsWithTheirSignals) {
  std::uint64_t* const signal = memory_.data() + bytes / 8 - 1;
  const auto put_signal = [&](const void* from, std::size_t count, std::uint64_t value) {
    return post_put_signal(Thread{}, context_, at(0), static_cast<const std::byte*>(from), count, signal, value, 0,
                           queue());
  };
  const std::uint64_t payload[] = {3, 4, 5};
  ASSERT_EQ(Status::ok, put_signal(payload, sizeof payload, 1));
  EXPECT_FALSE(lease(1));
  EXPECT_EQ(Status::ok, is_quiet());
  EXPECT_EQ(0, std::memcmp(at(0), payload, sizeof payload));
  EXPECT_EQ(1u, *signal);

  constexpr std::size_t count = bytes / 4;
  std::memset(at(2 * count), 0x5a, count);
  ASSERT_EQ(Status::ok, put_signal(at(2 * count), count, 2));
  EXPECT_TRUE(lease(1));
  EXPECT_EQ(1u, *signal) << "the put is not over";
  while (lease(1)) {
  }
  EXPECT_EQ(Status::ok, is_quiet());
  EXPECT_EQ(0, std::memcmp(at(0), at(2 * count), count));
  EXPECT_EQ(2u, *signal);
}

/// A lease ends in the middle of a put: the next one moves the rest, and only then does the next command.
TEST_F(ServiceBlock, GoesOnWithALargePut) {
  constexpr std::size_t count = bytes / 4;
  std::memset(at(2 * count), 0x5a, count);
  ASSERT_EQ(Status::ok, put(0, at(2 * count), count));
  ASSERT_EQ(Status::ok, post_signal(Thread{}, context_, memory_.data() + bytes / 8 - 1, 9, 0, queue()));
  EXPECT_TRUE(lease(1));
  EXPECT_GT(served_.moved, 0u);
  EXPECT_LT(served_.moved, count);
  EXPECT_EQ(Status::timeout, is_quiet());
  EXPECT_EQ(0u, memory_[bytes / 8 - 1]);
  int leases = 1;
  while (lease(1)) ASSERT_LT(++leases, 100);
  EXPECT_GE(leases, 3);
  EXPECT_EQ(Status::ok, is_quiet());
  EXPECT_EQ(0, std::memcmp(at(0), at(2 * count), count));
  EXPECT_EQ(9u, memory_[bytes / 8 - 1]);
  EXPECT_GE(served_.bytes, count);
}

/// Memory is freed between leases: the host has to refuse the rest of a put to it.
TEST_F(ServiceBlock, TouchesNothingThatHasGoneInTheMiddleOfAPut) {
  constexpr std::size_t count = bytes / 4;
  ASSERT_EQ(Status::ok, put(0, at(2 * count), count));
  EXPECT_TRUE(lease(1));
  const std::uint64_t moved = served_.moved;
  service_.piece_count = 0;
  EXPECT_TRUE(lease(5));
  EXPECT_EQ(moved, served_.moved);
  EXPECT_EQ(1u, handed().sequence);
  answer(1);
  EXPECT_FALSE(lease(5));
  EXPECT_EQ(Status::invalid_argument, is_quiet());
}

/// The host carries out commands that the block cannot check; the queue waits for the host.
TEST_F(ServiceBlock, HandsOverWhatItDoesNotReach) {
  std::vector<std::byte> elsewhere(4096);
  std::uint64_t value = 1;
  ASSERT_EQ(Status::ok, put(0, elsewhere.data(), elsewhere.size()));
  ASSERT_EQ(Status::ok, put(8, &value, sizeof value));
  EXPECT_TRUE(lease(5));
  EXPECT_EQ(Verb::put, handed().verb);
  EXPECT_EQ(1u, handed().sequence);
  EXPECT_TRUE(lease(5)) << "there is no answer yet";
  EXPECT_EQ(0u, memory_[1]);
  answer(0);
  EXPECT_FALSE(lease(5));
  EXPECT_EQ(Status::ok, is_quiet());
  EXPECT_EQ(1u, memory_[1]);
}

/// Commands that wait one behind the other are handed over together, for one answer; others wait for it.
TEST_F(ServiceBlock, HandsOverConsecutiveCommandsTogether) {
  std::vector<std::byte> elsewhere(4096);
  std::uint64_t value = 1;
  ASSERT_EQ(Status::ok, put(8, &value, sizeof value));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Status::ok, put(0, elsewhere.data() + i * 64, 64));
  value = 2;
  ASSERT_EQ(Status::ok, put(8, &value, sizeof value));
  for (int i = 0; i < 2; ++i) ASSERT_EQ(Status::ok, put(0, elsewhere.data(), elsewhere.size()));
  EXPECT_TRUE(lease(5));
  EXPECT_EQ(3u, forwarded_.number);
  EXPECT_EQ(4u, handed().sequence);
  EXPECT_EQ(2u, forwarded_.cell(1).sequence);
  EXPECT_EQ(1u, ring_->completed.value);
  EXPECT_EQ(1u, memory_[1]) << "the put behind them waits";
  answer(0);
  EXPECT_TRUE(lease(5));
  EXPECT_EQ(2u, memory_[1]);
  EXPECT_EQ(5u, ring_->completed.value);
  EXPECT_EQ(5u, forwarded_.number);
  ASSERT_EQ(Status::ok, put(8, &value, sizeof value));
  answer(1);  // of the two
  EXPECT_FALSE(lease(5));
  EXPECT_EQ(2u, ring_->refused.value) << "one of these, and what follows";
  EXPECT_EQ(Status::invalid_argument, is_quiet());
}

/// A batch for the host is as long as its memory.
TEST_F(ServiceBlock, HandsOverNoMoreThanItsHostHasRoomFor) {
  std::vector<std::byte> elsewhere(4096);
  for (std::uint32_t i = 0; i < service_batch + 3; ++i)
    ASSERT_EQ(Status::ok, put(0, elsewhere.data(), elsewhere.size()));
  EXPECT_TRUE(lease(5));
  EXPECT_EQ(service_batch, forwarded_.number);
  EXPECT_EQ(1u, forwarded_.cell(1).sequence);
  answer(0);
  EXPECT_TRUE(lease(5));
  EXPECT_EQ(service_batch + 3, forwarded_.number);
  answer(0);
  EXPECT_FALSE(lease(5));
  EXPECT_EQ(Status::ok, is_quiet());
}

/// Commands for a rank of another node go to the ring of the network's engine; the queue waits for their end.
class BlockOfTwoNodes : public ServiceBlock {
 protected:
  BlockOfTwoNodes() {
    service_.ranks = 2;
    service_.carried = carried_.get(), service_.is_remote = is_remote_;
  }
  void post_to_other_node(std::uint64_t value) {
    const std::uint64_t ticket = tickets_->next++;
    Command& command = ring_->commands[ticket % command_ring_depth];
    command = {0, Verb::store, 8, false, false, 1, 64, value, 0, 0, 0, 0};
    command.sequence = ticket + 1;
  }
  [[nodiscard]] const Command& sent(std::uint64_t number) const {
    return carried_->commands[(number - 1) % command_ring_depth];
  }
  static constexpr std::uint8_t is_remote_[] = {0, 1};
  std::unique_ptr<CommandRing> carried_ = std::make_unique<CommandRing>();
};

TEST_F(BlockOfTwoNodes, PostsToTheNetworksEngine) {
  std::uint64_t value = 1;
  post_to_other_node(5);
  ASSERT_EQ(Status::ok, put(0, &value, sizeof value));
  EXPECT_TRUE(lease(5));
  EXPECT_EQ(0u, forwarded_.number) << "the host has nothing to do";
  EXPECT_EQ(1u, sent(1).sequence);
  EXPECT_EQ(Verb::store, sent(1).verb);
  EXPECT_EQ(1u, sent(1).peer);
  EXPECT_EQ(64u, sent(1).remote);
  EXPECT_EQ(5u, sent(1).local);
  EXPECT_EQ(0u, memory_[0]) << "the queue waits";
  EXPECT_EQ(Status::timeout, is_quiet());
  carried_->completed.value = 1;
  EXPECT_FALSE(lease(5));
  EXPECT_EQ(1u, memory_[0]);
  EXPECT_EQ(Status::ok, is_quiet());
}

/// Consecutive commands are in flight together. They are complete in their order, before others of the queue begin.
TEST_F(BlockOfTwoNodes, PostsConsecutiveCommandsTogether) {
  std::uint64_t value = 1;
  ASSERT_EQ(Status::ok, put(8, &value, sizeof value));
  for (std::uint64_t number = 1; number <= 3; ++number) post_to_other_node(number);
  ASSERT_EQ(Status::ok, put(0, &value, sizeof value));
  post_to_other_node(4);
  EXPECT_TRUE(lease(5));
  EXPECT_EQ(1u, memory_[1]);
  EXPECT_EQ(3u, forwarded_.sent);
  for (std::uint64_t number = 1; number <= 3; ++number) {
    EXPECT_EQ(number, sent(number).sequence);
    EXPECT_EQ(number, sent(number).local);
  }
  EXPECT_EQ(1u, forwarded_.ahead) << "the put before them";
  EXPECT_EQ(1u, ring_->completed.value);
  carried_->completed.value = 2;
  EXPECT_TRUE(lease(5));
  EXPECT_EQ(3u, ring_->completed.value);
  EXPECT_EQ(0u, memory_[0]) << "one is in flight";
  carried_->completed.value = 3;
  EXPECT_TRUE(lease(5));
  EXPECT_EQ(1u, memory_[0]);
  EXPECT_EQ(5u, ring_->completed.value);
  EXPECT_EQ(4u, forwarded_.sent);
  EXPECT_EQ(2u, forwarded_.ahead);
  carried_->completed.value = 4;
  EXPECT_FALSE(lease(5));
  EXPECT_EQ(Status::ok, is_quiet());
}

/// No cell of the network engine's ring is written while the command that it holds is in flight.
TEST_F(BlockOfTwoNodes, PostsNoMoreThanTheRingHolds) {
  for (std::uint64_t number = 1; number <= command_ring_depth; ++number) post_to_other_node(number);
  EXPECT_TRUE(lease(10));
  EXPECT_EQ(command_ring_depth, forwarded_.sent);
  for (std::uint64_t number = 1; number <= 10; ++number) post_to_other_node(number);
  EXPECT_TRUE(lease(10));
  EXPECT_EQ(command_ring_depth, forwarded_.sent);
  EXPECT_EQ(1u, sent(1).sequence);
  carried_->completed.value = 4;
  EXPECT_TRUE(lease(10));
  EXPECT_EQ(command_ring_depth + 4, forwarded_.sent);
  carried_->completed.value = command_ring_depth + 4;
  EXPECT_TRUE(lease(10));
  carried_->completed.value = command_ring_depth + 10;
  EXPECT_FALSE(lease(10));
  EXPECT_EQ(Status::ok, is_quiet());
}

/// Of several commands in flight those before the refused one are done. Nothing is sent once its refusal is known.
TEST_F(BlockOfTwoNodes, CountsTheRefusedOfSeveral) {
  for (std::uint64_t number = 1; number <= 5; ++number) post_to_other_node(number);
  EXPECT_TRUE(lease(5));
  forwarded_.first_refused = 3;
  carried_->completed.value = DoneCount::of(2, true).word;
  EXPECT_TRUE(lease(5));
  EXPECT_EQ(2u, ring_->completed.value) << "these were not refused";
  carried_->completed.value = DoneCount::of(4, true).word;
  EXPECT_TRUE(lease(5));
  EXPECT_EQ(2u, ring_->refused.value);
  post_to_other_node(6);
  EXPECT_TRUE(lease(5));
  EXPECT_EQ(5u, forwarded_.sent);
  carried_->completed.value = DoneCount::of(5, true).word;
  EXPECT_FALSE(lease(5));
  EXPECT_EQ(5u, forwarded_.sent);
  EXPECT_EQ(4u, ring_->refused.value);
  EXPECT_EQ(Status::invalid_argument, is_quiet());
}

TEST_F(BlockOfTwoNodes, RefusesWhatFollowsARefusal) {
  std::uint64_t value = 1;
  for (std::uint64_t number = 1; number <= command_ring_depth; ++number) {
    post_to_other_node(number);
    EXPECT_TRUE(lease(2));
    EXPECT_EQ(number, sent(number).sequence);
    carried_->completed.value = number;
    EXPECT_FALSE(lease(2));
  }
  post_to_other_node(0);
  post_to_other_node(0);
  ASSERT_EQ(Status::ok, put(0, &value, sizeof value));
  EXPECT_TRUE(lease(5));
  forwarded_.first_refused = command_ring_depth + 1;
  carried_->completed.value = DoneCount::of(command_ring_depth + 2, true).word;
  EXPECT_FALSE(lease(5));
  EXPECT_EQ(0u, memory_[0]);
  EXPECT_EQ(3u, served_.refused);
  EXPECT_EQ(Status::invalid_argument, is_quiet());
}

/// The host gives up commands in flight that their target does not complete; what follows is refused.
TEST_F(BlockOfTwoNodes, RefusesAllThatTheHostGivesUp) {
  for (std::uint64_t number = 1; number <= 4; ++number) post_to_other_node(number);
  EXPECT_TRUE(lease(2));
  carried_->completed.value = 2;
  EXPECT_TRUE(lease(2));
  forwarded_.given_up = 3;
  post_to_other_node(5);
  EXPECT_FALSE(lease(2));
  EXPECT_EQ(4u, forwarded_.sent);
  EXPECT_EQ(3u, ring_->refused.value);
  EXPECT_EQ(Status::invalid_argument, is_quiet());
}

TEST_F(BlockOfTwoNodes, RefusesACommandThatTheHostGivesUp) {
  post_to_other_node(1);
  EXPECT_TRUE(lease(2));
  EXPECT_EQ(1u, forwarded_.sent);
  EXPECT_TRUE(lease(2)) << "it has not ended";
  forwarded_.given_up = 1;
  EXPECT_FALSE(lease(2));
  EXPECT_EQ(1u, served_.refused);
  EXPECT_EQ(Status::invalid_argument, is_quiet());
}

/// A rank that does not exist, or memory that this rank's block does not reach, is the host's to refuse.
TEST_F(BlockOfTwoNodes, HandsOverTheRest) {
  post_to_other_node(1);
  ring_->commands[0].peer = 2;
  EXPECT_TRUE(lease(2));
  EXPECT_EQ(1u, forwarded_.number);
  EXPECT_EQ(0u, served_.sent);
}

TEST_F(ServiceBlock, HandsOverBadCommands) {
  const auto bad = [&](Verb verb, std::uint8_t width, std::uint32_t peer, std::uint64_t remote, std::uint64_t local,
                       std::uint64_t rows, std::uint64_t row_bytes, std::uint64_t signal = 0) {
    const std::uint64_t ticket = tickets_->next++;
    Command& command = ring_->commands[ticket % command_ring_depth];
    command = {0, verb, width, false, false, peer, remote, local, rows, row_bytes, signal, 0};
    command.sequence = ticket + 1;
    EXPECT_TRUE(lease(2));
    EXPECT_EQ(ticket + 1, handed().sequence);
    answer(0);
    EXPECT_FALSE(lease(2));
  };
  const std::uint64_t here = piece_.first;
  bad(static_cast<Verb>(77), 8, 0, 0, 0, 0, 0);
  bad(Verb::add, 8, 1, 0, 1, 0, 0);                        // there is no such rank
  bad(Verb::add, 2, 0, 0, 1, 0, 0);                        // no atomic has this width
  bad(Verb::add, 8, 0, 4, 1, 0, 0);                        // not a multiple of the width
  bad(Verb::store, 8, 0, bytes, 1, 0, 0);                  // beyond the memory
  bad(Verb::store, 8, 0, ~std::uint64_t{7}, 1, 0, 0);      // beyond the slot
  bad(Verb::put_inline, 41, 0, 0, 0, 0, 0);                // too many bytes
  bad(Verb::put_inline_signal, 25, 0, 0, 0, 0, 0, 64);     // too many bytes
  bad(Verb::put_inline_signal, 8, 0, 0, 1, 0, 0, 60);      // the signal is not aligned
  bad(Verb::put_signal, 0, 0, 0, here + 64, 1, 8, bytes);  // the signal is not in the memory
  bad(Verb::put, 0, 0, 0, here, 1, 8);                     // onto itself
  bad(Verb::put, 0, 0, 0, here + 8, 1, 0);                 // no bytes
  bad(Verb::put, 0, 0, 0, here + 64, 2, 8);                // rows
  bad(Verb::put, 0, 0, bytes - 8, here, 1, 16);            // beyond the end at the peer
  bad(Verb::get, 0, 0, 0, here + bytes - 8, 1, 16);        // beyond the end on this rank
  bad(Verb::put, 0, 0, 0, here, 1, ~std::uint64_t{0});     // more bytes than there are
  bad(Verb::copy, 0, 0, here, here + 64, 1, 8);            // only a copy engine does this
  EXPECT_EQ(std::vector<std::uint64_t>(bytes / 8), memory_);
}

/// No command after a refused one is carried out in its queue.
TEST_F(ServiceBlock, RefusesWhatIsBehindARefusedCommand) {
  std::vector<std::byte> elsewhere(4096);
  ASSERT_EQ(Status::ok, put(0, elsewhere.data(), elsewhere.size()));
  ASSERT_EQ(Status::ok, post_signal(Thread{}, context_, memory_.data() + 1, 7, 0, queue()));
  EXPECT_TRUE(lease(5));
  answer(1);
  EXPECT_FALSE(lease(5));
  EXPECT_EQ(Status::invalid_argument, is_quiet());
  EXPECT_EQ(0u, memory_[1]);
  EXPECT_EQ(2u, ring_->refused.value);
}

/// The first post to a sleeping ring asks for a lease; a post to a ring that is served does not.
TEST_F(ServiceBlock, IsAskedForByPosters) {
  std::uint64_t value = 1;
  EXPECT_FALSE(lease(1));
  ASSERT_EQ(Status::ok, put(0, &value, sizeof value));
  EXPECT_EQ(0u, wanted_) << "the ring was not left asleep";
  service_.lease.asleep_mark = reinterpret_cast<std::uintptr_t>(&bell_);
  EXPECT_FALSE(lease(1));
  ASSERT_EQ(Status::ok, put(0, &value, sizeof value));
  EXPECT_EQ(1u, wanted_);
  EXPECT_FALSE(lease(1));
  ASSERT_EQ(Status::ok, put(0, &value, sizeof value));
  EXPECT_TRUE(lease(0)) << "a command that came in the last moment";
}

/// If no lease starts, posters end at their deadline and record what they waited for.
TEST_F(ServiceBlock, ThatDoesNotComeCostsTheDeadline) {
  context_.deadline_ns = 20'000'000;
  std::uint64_t value = 1;
  for (std::uint32_t i = 0; i < command_ring_depth; ++i) ASSERT_EQ(Status::ok, put(0, &value, sizeof value));
  EXPECT_EQ(Status::deadline, quiet(Thread{}, context_, queue()));
  EXPECT_EQ(static_cast<std::uint32_t>(Operation::quiet), records_[0].operation);
  EXPECT_EQ(std::uint64_t{command_ring_depth}, records_[0].expected);
  EXPECT_EQ(0u, records_[0].observed);
  EXPECT_EQ(Status::aborted, put(0, &value, sizeof value)) << "the first deadline ends the others' waits";
  std::fill(std::begin(abort_words_), std::end(abort_words_), 0);
  EXPECT_EQ(Status::deadline, put(0, &value, sizeof value));
}

/// The same block with a table of triggered operations; the test acts as the host.
class ServiceBlockOfTriggers : public ServiceBlock {
 protected:
  ServiceBlockOfTriggers() {
    service_.triggers = {tags_.data(),
                         entries_.data(),
                         commands_.data(),
                         &fired_,
                         &totals_,
                         static_cast<std::uint32_t>(tags_.size()),
                         1};
  }
  /// Arms an operation before those that are armed for the tag.
  void arm(std::uint32_t number, std::uint32_t tag, std::uint64_t threshold, const Command& command,
           std::uint32_t then = no_chain) {
    commands_[number].commands[0] = command;
    entries_[number] = {threshold, entries_[number].over, tags_[tag].armed, then, 1};
    tags_[tag].armed = number, tags_[tag].threshold = threshold;
  }
  static Command store(std::uint64_t at, std::uint64_t value) {
    Command command{};
    command.verb = Verb::store, command.width = 8, command.remote = at, command.local = value;
    return command;
  }
  Command put_of(std::size_t to, const void* from, std::size_t count) {
    Command command{};
    command.verb = Verb::put, command.remote = to, command.local = reinterpret_cast<std::uintptr_t>(from);
    command.rows = 1, command.row_bytes = count;
    return command;
  }
  Status trigger_tag(std::uint32_t tag) {
    const CommandQueuesView queues{ring_.get(), tickets_.get(), 1, &wanted_};
    return trigger(Thread{}, context_, TriggerChannel{queues, nullptr, static_cast<std::uint32_t>(tags_.size())}, tag);
  }

  std::vector<TriggerTag> tags_ = std::vector<TriggerTag>(4);
  std::vector<TriggerEntry> entries_ = std::vector<TriggerEntry>(5);
  std::vector<EntryCommands> commands_ = std::vector<EntryCommands>(5);
  FiredOperations fired_{};
  TriggerTotals totals_{};
};

TEST_F(ServiceBlockOfTriggers, FiresAtTheThreshold) {
  arm(1, 0, 3, store(8, 3));
  arm(2, 0, 2, store(0, 2));
  ASSERT_EQ(Status::ok, trigger_tag(0));
  EXPECT_FALSE(lease(1));
  EXPECT_EQ(Status::ok, is_quiet());
  EXPECT_EQ(0u, memory_[0]);
  ASSERT_EQ(Status::ok, trigger_tag(0));
  EXPECT_FALSE(lease(1));
  EXPECT_EQ(2u, memory_[0]);
  EXPECT_EQ(0u, memory_[1]);
  EXPECT_EQ(1u, entries_[2].over);
  EXPECT_EQ(0u, entries_[1].over);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(Status::ok, trigger_tag(0));
  EXPECT_FALSE(lease(1));
  EXPECT_EQ(3u, memory_[1]);
  EXPECT_EQ(4u, tags_[0].count);
  EXPECT_EQ(2u, totals_.fired);
  EXPECT_EQ(2u, totals_.over);
}

/// A lease ends in the middle of a triggered put: the trigger completes and the chain continues when the put is done.
TEST_F(ServiceBlockOfTriggers, GoesOnWithALargePutAndItsChain) {
  constexpr std::size_t count = bytes / 4;
  std::memset(at(2 * count), 0x5a, count);
  arm(1, 0, 1, put_of(0, at(2 * count), count), 3);
  arm(2, 3, 1, store(bytes - 8, 9), 2);
  ASSERT_EQ(Status::ok, trigger_tag(0));
  EXPECT_TRUE(lease(1));
  EXPECT_GT(served_.moved, 0u);
  EXPECT_EQ(Status::timeout, is_quiet());
  EXPECT_EQ(0u, tags_[3].count);
  EXPECT_EQ(0u, entries_[1].over);
  while (lease(1)) {
  }
  EXPECT_EQ(Status::ok, is_quiet());
  EXPECT_EQ(0, std::memcmp(at(0), at(2 * count), count));
  EXPECT_EQ(9u, memory_[bytes / 8 - 1]);
  EXPECT_EQ(1u, tags_[2].count) << "a chain into a tag that nothing is armed for";
}

/// Operations that the host found ready to fire are carried out when a lease begins.
TEST_F(ServiceBlockOfTriggers, FiresWhatIsArmedLate) {
  for (const std::uint32_t tag : {1u, 2u, 2u}) ASSERT_EQ(Status::ok, trigger_tag(tag));
  EXPECT_FALSE(lease(1));
  arm(1, 1, 1, store(0, 1));
  arm(2, 2, 2, store(8, 2));
  arm(3, 2, 1, store(16, 3));
  tags_[1].met = last_met, tags_[2].met = 2, totals_.met = 3;
  EXPECT_FALSE(lease(1));
  EXPECT_EQ(1u, memory_[0]);
  EXPECT_EQ(2u, memory_[1]);
  EXPECT_EQ(3u, memory_[2]);
  EXPECT_EQ(0u, totals_.met);
  EXPECT_EQ(0u, tags_[1].met | tags_[2].met);
}

/// A refused operation triggers nothing, and no later operation is carried out or counted.
TEST_F(ServiceBlockOfTriggers, RefusesWhatIsBehindARefusedOperation) {
  std::vector<std::byte> elsewhere(4096);
  arm(1, 0, 1, put_of(0, elsewhere.data(), elsewhere.size()), 1);
  arm(2, 1, 1, store(8, 1));
  ASSERT_EQ(Status::ok, trigger_tag(0));
  ASSERT_EQ(Status::ok, trigger_tag(1));
  EXPECT_TRUE(lease(5));
  EXPECT_EQ(0u, handed().sequence) << "it was not posted";
  answer(1);
  EXPECT_FALSE(lease(5));
  EXPECT_EQ(Status::invalid_argument, is_quiet());
  EXPECT_EQ(0u, memory_[1]);
  EXPECT_EQ(0u, tags_[1].count);
  EXPECT_EQ(1u, entries_[1].over);
  EXPECT_EQ(0u, entries_[2].over);
}

}  // namespace

}  // namespace beeline
