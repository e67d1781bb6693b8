// SPDX-License-Identifier: Apache-2.0
// The table of verbs: for each verb its text, the commands that are refused, and its reference execution.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/command_check.hpp"
#include "control/host_engine.hpp"
#include "tests/support/stopwatch.hpp"
#include "tests/unit/lone_client.hpp"

namespace beeline {

using beeline_test::Stopwatch;

namespace {

constexpr std::uint64_t held = 12, operand = 10;

/// The value of a word `held` after a command with `operand`; none if the verb changes no word.
std::optional<std::uint64_t> changed_by(Verb verb) {
  const std::map<Verb, std::uint64_t> words = {{Verb::store, 10},   {Verb::add, 22},      {Verb::bit_and, 8},
                                               {Verb::bit_or, 14},  {Verb::bit_xor, 6},   {Verb::minimum, 10},
                                               {Verb::maximum, 12}, {Verb::exchange, 10}, {Verb::compare_swap, 10}};
  const auto found = words.find(verb);
  return found == words.end() ? std::nullopt : std::optional(found->second);
}

class Verbs : public LoneClient {
 protected:
  /// A command as the verb's poster writes it: two rows of two words, one word, or three words in the command.
  [[nodiscard]] Command sample(const VerbInfo& verb) {
    Command command{};
    command.verb = verb.verb, command.sequence = 1, command.remote = 8 * target, command.local = operand;
    switch (verb.shape) {
      case VerbShape::between:
        command.remote = reinterpret_cast<std::uintptr_t>(bytes_at(target));
        [[fallthrough]];
      case VerbShape::to_peer:
      case VerbShape::from_peer:
        command.local = address_of(source);
        command.rows = verb.has_signal ? 1 : 2, command.row_bytes = 16;
        command.remote_stride = 32, command.local_stride = 24;
        break;
      case VerbShape::payload:
        command.width = 24, command.rows = 11, command.row_bytes = 12;
        break;
      case VerbShape::word:
      case VerbShape::atomic:
        command.width = 8, command.rows = held;
        break;
      case VerbShape::count:
        command.remote = 3;
        break;
      case VerbShape::entries:
        new (bytes_at(list)) BatchEntry[]{BatchEntry::of(Verb::put_inline, 16, 8 * target, operand, 11),
                                          BatchEntry::of(Verb::put, 0, 8 * target + 32, address_of(source), 16),
                                          BatchEntry::of(Verb::add, 8, 8 * signal, 99, 0)};
        command.local = address_of(list), command.remote = 0, command.rows = 3, command.row_bytes = sizeof(BatchEntry);
    }
    if (verb.has_signal) command.remote_stride = 8 * signal, command.local_stride = 99;
    return command;
  }
  [[nodiscard]] std::string refusal(const Command& command) {
    const char* const refused = target_of(client_, mapped_, command).refused;
    return refused == nullptr ? "" : refused;
  }
  [[nodiscard]] std::vector<std::uint64_t> words(std::size_t first, std::size_t count) const {
    return {memory_.begin() + static_cast<std::ptrdiff_t>(first),
            memory_.begin() + static_cast<std::ptrdiff_t>(first + count)};
  }
  using Words = std::vector<std::uint64_t>;

  [[nodiscard]] std::uint64_t address_of(std::size_t word) { return reinterpret_cast<std::uintptr_t>(bytes_at(word)); }

  static constexpr std::size_t target = 64, source = 256, signal = 300, list = 400;
  MappedMemory mapped_{client_};
  CommandWorker worker_;
};

TEST_F(Verbs, HaveNamesThatTextsGive) {
  std::set<std::string> names;
  for (const VerbInfo& verb : verb_infos) {
    EXPECT_TRUE(names.insert(verb.name).second) << verb.name;
    EXPECT_EQ(&verb, find_verb(verb.verb));
    EXPECT_EQ(0u, text_of(sample(verb)).find(std::string(verb.name) + " of ")) << text_of(sample(verb));
  }
  EXPECT_EQ(nullptr, find_verb(static_cast<Verb>(command_verbs)));
  Command none{};
  none.verb = static_cast<Verb>(77);
  EXPECT_EQ("there is no such verb", refusal(none));
  EXPECT_EQ(0u, text_of(none).find("verb 77 of "));
}

/// The predicates that kernels use agree with the table.
TEST_F(Verbs, AreComparedAsTheTableSays) {
  for (const VerbInfo& verb : verb_infos) {
    EXPECT_EQ(verb.has_signal, has_signal(sample(verb))) << verb.name;
    EXPECT_EQ(verb.shape == VerbShape::atomic, has_shape<VerbShape::atomic>(verb.verb)) << verb.name;
    EXPECT_EQ(verb.shape == VerbShape::payload && !verb.has_signal, has_shape_alone<VerbShape::payload>(verb.verb));
    EXPECT_EQ(verb.shape == VerbShape::atomic && !verb.needs_answer, is_atomic_without_answer(verb.verb)) << verb.name;
  }
}

TEST_F(Verbs, AreRefusedForWhatTheyName) {
  for (const VerbInfo& verb : verb_infos) {
    const Command good = sample(verb);
    if (verb.shape == VerbShape::count) {
      EXPECT_EQ("its queue takes no triggers", refusal(good));
      continue;
    }
    EXPECT_EQ("", refusal(good)) << verb.name;
    const auto refused = [&](auto spoil) {
      Command bad = good;
      spoil(bad);
      return refusal(bad);
    };
    if (verb.shape != VerbShape::between)
      EXPECT_EQ("there is no such rank", refused([](Command& bad) { bad.peer = 1; })) << verb.name;
    if (verb.shape != VerbShape::between && verb.shape != VerbShape::entries) {
      EXPECT_EQ("the place is not in its peer's memory",
                refused([](Command& bad) { bad.remote = std::uint64_t{1} << min_slot_shift; }))
          << verb.name;
      EXPECT_EQ("no memory of its peer is there (any more)", refused([](Command& bad) { bad.remote = bytes; }))
          << verb.name;
    }
    if (verb.has_signal) {
      EXPECT_EQ("the word's width does not fit the operation, or the word is not aligned",
                refused([](Command& bad) { bad.remote_stride += 4; }))
          << verb.name;
    }
    switch (verb.shape) {
      case VerbShape::payload:
        EXPECT_EQ("no command holds so many bytes", refused([](Command& bad) { bad.width = 0; })) << verb.name;
        EXPECT_EQ(verb.has_signal ? "no command with a signal holds so many bytes" : "",
                  refused([](Command& bad) { bad.width = max_inline_bytes; }))
            << verb.name;
        break;
      case VerbShape::word:
      case VerbShape::atomic:
        EXPECT_EQ(verb.shape == VerbShape::word
                      ? ""
                      : "the word's width does not fit the operation, or the word is not aligned",
                  refused([](Command& bad) { bad.width = 2; }))
            << verb.name;
        break;
      case VerbShape::entries:
        for (const std::uint64_t rows : {0u, most_batch_entries + 1})
          EXPECT_EQ("no batch has so many entries, or entries of such a size",
                    refused([rows](Command& bad) { bad.rows = rows; }));
        break;
      default:
        EXPECT_EQ("rows of no bytes, or beyond the end of the address space",
                  refused([](Command& bad) { bad.row_bytes = 0; }))
            << verb.name;
        EXPECT_EQ("its two places overlap",
                  refused([this](Command& bad) { bad.local = reinterpret_cast<std::uintptr_t>(bytes_at(target)) + 8; }))
            << verb.name;
    }
  }
}

/// GPU memory may be mapped in a host rank's process, but its engine must not touch it.
TEST_F(Verbs, OfHostRanksTouchNoGpuMemory) {
  client_.is_host_memory = [](const void*) { return false; };
  MappedMemory mapped(client_);
  for (const VerbInfo& verb : verb_infos) {
    if (verb.shape == VerbShape::count || verb.shape == VerbShape::between || verb.shape == VerbShape::entries)
      continue;
    EXPECT_STREQ("it is memory of a GPU, which threads of a host rank do not access",
                 target_of(client_, mapped, sample(verb)).refused)
        << verb.name;
  }
}

TEST_F(Verbs, AreCarriedOutByLoadsAndStores) {
  for (const VerbInfo& verb : verb_infos) {
    if (verb.shape == VerbShape::count) continue;
    std::fill(memory_.begin(), memory_.end(), 0);
    memory_[target] = held;
    for (std::size_t i = 0; i < 6; ++i) memory_[source + i] = 100 + i;
    const Command command = sample(verb);
    const BegunCommand begun = begin_command(client_, mapped_, worker_, command, 5);
    EXPECT_EQ(nullptr, begun.refused) << verb.name;
    EXPECT_TRUE(worker_.over()) << verb.name;
    EXPECT_EQ(verb.has_signal || verb.shape == VerbShape::entries ? 99u : 0u, memory_[signal]) << verb.name;
    const std::size_t signal_bytes = verb.has_signal ? 8 : 0;
    switch (verb.shape) {
      case VerbShape::word:
      case VerbShape::atomic:
        ASSERT_TRUE(changed_by(verb.verb)) << verb.name << " has no expected value in this test";
        EXPECT_EQ(*changed_by(verb.verb), memory_[target]) << verb.name;
        EXPECT_EQ(verb.shape == VerbShape::atomic ? held : 0, worker_.result(5)) << verb.name;
        EXPECT_EQ(8u, begun.bytes) << verb.name;
        break;
      case VerbShape::payload:
        EXPECT_EQ((Words{operand, 11, 12, 0}), words(target, 4)) << verb.name;
        EXPECT_EQ(24 + signal_bytes, begun.bytes) << verb.name;
        break;
      case VerbShape::entries:
        EXPECT_EQ((Words{operand, 11, 0, 0, 100, 101}), words(target, 6));
        EXPECT_EQ(40u, begun.bytes);
        break;
      case VerbShape::from_peer:
        EXPECT_EQ((Words{held, 0, 102, 0, 0}), words(source, 5)) << verb.name;
        EXPECT_EQ(32u, begun.bytes) << verb.name;
        break;
      default:
        EXPECT_EQ(verb.has_signal ? (Words{100, 101, 0, 0, 0, 0}) : (Words{100, 101, 0, 0, 103, 104}), words(target, 6))
            << verb.name;
        EXPECT_EQ((verb.has_signal ? 16u : 32u) + signal_bytes, begun.bytes) << verb.name;
    }
  }
}

/// Words of every width, with and without a sign; a compare-and-swap whose word differs.
TEST_F(Verbs, ChangeWordsOfEveryWidth) {
  Command command = sample(*find_verb(Verb::minimum));
  const auto change = [&](std::uint64_t before) {
    memory_[target] = before;
    EXPECT_EQ(nullptr, begin_command(client_, mapped_, worker_, command, 0).refused);
    return memory_[target];
  };
  command.width = 4, command.local = 0xffff'ffff;
  EXPECT_EQ(0xaa'0000'0007u, change(0xaa'0000'0007));
  command.is_signed = true;
  EXPECT_EQ(0xaa'ffff'ffffu, change(0xaa'0000'0007));
  command.verb = Verb::store;
  for (const std::uint8_t width : {1, 2, 4, 8}) {
    command.width = width, command.local = ~std::uint64_t{0};
    EXPECT_EQ(width == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * width) - 1, change(0)) << int{width};
  }
  command.verb = Verb::compare_swap, command.width = 8, command.rows = 5, command.local = 6;
  EXPECT_EQ(4u, change(4));
  EXPECT_EQ(4u, worker_.result(0));
}

/// A source of listed commands, without a ring.
class ListedCommands final : public CommandSource {
 public:
  explicit ListedCommands(std::vector<Command> commands) : commands_(std::move(commands)) {}

  bool has_next() const override { return taken_ < commands_.size(); }
  Verb next_verb() const override { return commands_[taken_].verb; }
  bool take(Command& command) override {
    if (!has_next()) return false;
    command = commands_[taken_++];
    command.sequence = taken_;
    return true;
  }
  std::uint64_t taken() const override { return taken_; }
  void release_slots() override { released_ = taken_; }
  void answer(const Command& command, std::uint64_t value) override { answers_.emplace_back(command.sequence, value); }
  void release_sources(DoneCount) override {}
  void complete(DoneCount completed) override { completed_ = completed.word; }
  void refuse(std::uint64_t commands) override { refused_ = commands; }
  void set_waker(Waker*) noexcept override {}
  void wake() const noexcept override {}

  std::vector<std::pair<std::uint64_t, std::uint64_t>> answers_;
  std::uint64_t released_ = 0, refused_ = 0;  ///< read once all commands are complete
  std::atomic<std::uint64_t> completed_{0};

 private:
  const std::vector<Command> commands_;
  std::uint64_t taken_ = 0;
};

TEST_F(Verbs, ComeFromAnySource) {
  Command add = sample(*find_verb(Verb::add)), wrong = add;
  add.answers = true, wrong.width = 2;
  std::vector<Command> commands(200, add);
  commands.push_back(sample(*find_verb(Verb::get)));
  commands.push_back(wrong);
  ListedCommands listed(commands);
  HostEngine engine(client_, {});
  engine.add(listed);
  const Stopwatch watch;
  while (DoneCount{listed.completed_}.commands() < commands.size()) ASSERT_LT(watch.seconds(), 60);
  EXPECT_EQ(200 * operand, memory_[target]);
  EXPECT_EQ(200 * operand, memory_[source]);
  ASSERT_EQ(200u, listed.answers_.size());
  EXPECT_EQ((std::pair<std::uint64_t, std::uint64_t>(200, 199 * operand)), listed.answers_.back());
  EXPECT_EQ(commands.size(), listed.released_);
  EXPECT_EQ(1u, listed.refused_);
  EXPECT_NE(std::string::npos, engine.refusals().of(&listed).find("refused command 202"))
      << engine.refusals().of(&listed);
  engine.remove(listed);
}

/// If the last entry is refused, for any reason, none of the earlier entries takes effect.
TEST_F(Verbs, BatchesAreRefusedAsAWhole) {
  const Command batch = sample(*find_verb(Verb::batch));
  auto* const entries = reinterpret_cast<BatchEntry*>(bytes_at(list));
  const auto refused = [&](const BatchEntry& last) {
    entries[2] = last;
    const BegunCommand begun = begin_command(client_, mapped_, worker_, batch, 0);
    EXPECT_EQ((Words{0, 0, 0, 0, 0, 0}), words(target, 6));
    return std::string(begun.refused == nullptr ? "" : begun.refused);
  };
  const auto at_target = [&](Verb verb, std::size_t width, std::uint64_t length) {
    return BatchEntry::of(verb, width, 8 * target, address_of(source), length);
  };
  for (const Verb verb : {Verb::get, Verb::compare_swap, Verb::put_signal, Verb::copy, Verb::batch, Verb{77}})
    EXPECT_NE(std::string::npos, refused(at_target(verb, 8, 8)).find("a batch has no such operations"));
  EXPECT_NE(std::string::npos,
            refused(at_target(Verb::put, 0, most_batched_bytes + 1)).find("no entry of a batch has so many bytes"));
  EXPECT_NE(std::string::npos, refused(at_target(Verb::put, 0, 0)).find("rows of no bytes"));
  EXPECT_NE(std::string::npos,
            refused(at_target(Verb::put_inline, 17, 0)).find("no entry of a batch has so many bytes"));
  EXPECT_NE(std::string::npos, refused(BatchEntry::of(Verb::store, 8, 8 * target + 4, 0, 0)).find("not aligned"));
  EXPECT_EQ(
      "entry 2 (store of 8 bytes, rank 0, offset 0x100000 of its slot): no memory of its peer is there (any more)",
      refused(BatchEntry::of(Verb::store, 8, bytes, 0, 0)));
  Command elsewhere = batch;
  elsewhere.local = 8;
  client_.piece_at = [this](const void* at) {
    return at == bytes_at(target) ? std::span<const std::byte>(context_.range, bytes) : std::span<const std::byte>();
  };
  MappedMemory mapped(client_);
  EXPECT_STREQ("memory of its poster is not there", begin_command(client_, mapped, worker_, elsewhere, 0).refused);
}

TEST_F(Verbs, TriggersAreRefusedByOneText) {
  EXPECT_STREQ("its queue takes no triggers", refuse_trigger(0, 1, 0));
  EXPECT_STREQ("there is no such tag", refuse_trigger(4, 1, 4));
  EXPECT_STREQ("it counts nothing", refuse_trigger(3, 0, 4));
  EXPECT_EQ(nullptr, refuse_trigger(3, 1, 4));
}

}  // namespace

}  // namespace beeline
