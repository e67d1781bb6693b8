// SPDX-License-Identifier: Apache-2.0
// The table of triggered operations, the table of a device engine, and libfabric's `sockets` provider, which has
// deferred work on counters, follow the same scripts: after each step the same operations have fired.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

#include "beeline/beeline.hpp"
#include "control/host_triggers.hpp"
#include "tests/support/random.hpp"
#include "tests/support/ranks.hpp"
#ifdef BEELINE_HAS_LIBFABRIC
#include "tests/model/trigger_oracle.hpp"
#endif

namespace beeline {

namespace {

#ifdef BEELINE_HAS_LIBFABRIC

using beeline_test::TriggerOracle;

constexpr int tags = 6;

/// Arms operation `name` with a threshold, or, if `threshold` is 0, triggers the tag `count` times.
struct Step {
  std::uint32_t tag;
  std::uint64_t threshold, count;
  int then = -1;  ///< the tag that the operation's completion triggers
};

/// The table of this library; the test acts as the engine.
class Table {
 public:
  explicit Table(std::uint32_t writes)
      : table_(
            {std::uint32_t{tags}, writes, std::uint64_t{1} << 60}, 1, [](std::uint32_t) {},
            [](const std::string&) { FAIL(); }) {}

  void defer(std::uint64_t name, const Step& step) {
    TriggeredCommands what{.tag = step.tag, .threshold = step.threshold};
    if (step.then >= 0) what.then = static_cast<std::uint32_t>(step.then);
    what.commands[0].local = name;
    table_.arm(what);
  }
  void add(const Step& step) { ASSERT_EQ(nullptr, table_.trigger(step.tag, step.count)); }
  std::set<std::size_t> arrived() {
    std::set<std::size_t> names;
    Command command;
    for (FiredCommand fired; table_.take(0, command, fired); table_.finish(fired, true)) names.insert(command.local);
    return names;
  }

 private:
  HostTriggers table_;
};

/// The device engine of a host rank.
class ByDevice {
 public:
  ByDevice(World& world, std::size_t writes)
      : words_(world, writes), triggers_(world, {.tags = std::uint32_t{tags}, .by = TriggeredBy::device_engine}) {}

  void defer(std::uint64_t name, const Step& step) {
    const auto then = step.then >= 0 ? static_cast<std::uint32_t>(step.then) : no_chain;
    triggers_.arm(TriggeredOperation::atomic(Verb::add, &words_.data()[name], 1, 0), {step.tag, step.threshold, then});
  }
  void add(const Step& step) { triggers_.trigger(step.tag, step.count); }
  /// The writes that have arrived since the last call; waits until there are `expected`, or 20 s.
  std::set<std::size_t> arrived(std::size_t expected) {
    std::set<std::size_t> names;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (names.size() < expected && std::chrono::steady_clock::now() < end)
      for (std::size_t name = 0; name < words_.count(); ++name)
        if (detail::load_acquired(words_.data()[name]) == 1 && seen_.insert(name).second) names.insert(name);
    return names;
  }
  /// Sum of all words: the number of writes that arrived, if each arrived once.
  [[nodiscard]] std::uint64_t sum() const {
    return std::accumulate(words_.data(), words_.data() + words_.count(), 0ul);
  }

 private:
  const SymmetricArray<std::uint64_t> words_;
  Triggers triggers_;
  std::set<std::size_t> seen_;
};

void follow(World& world, TriggerOracle& oracle, const std::vector<Step>& script) {
  Table table(static_cast<std::uint32_t>(script.size()));
  ByDevice by_device(world, script.size());
  std::size_t fired = 0;
  for (std::size_t i = 0; i < script.size(); ++i) {
    const Step& step = script[i];
    if (step.threshold > 0) {
      table.defer(i, step);
      by_device.defer(i, step);
      oracle.defer(i, step.tag, step.threshold, step.then);
    } else {
      table.add(step);
      by_device.add(step);
      oracle.add(step.tag, step.count);
    }
    const std::set<std::size_t> expected = table.arrived();
    fired += expected.size();
    ASSERT_EQ(expected, oracle.arrived(expected.size(), std::chrono::seconds(20))) << "behind step " << i;
    ASSERT_EQ(expected, by_device.arrived(expected.size())) << "behind step " << i;
    ASSERT_EQ(fired, by_device.sum()) << "behind step " << i;
  }
  EXPECT_GT(fired, 0u);
}

void follow(const std::vector<Step>& script) {
  std::unique_ptr<TriggerOracle> oracle;
  try {
    oracle = std::make_unique<TriggerOracle>(tags, script.size());
  } catch (const std::runtime_error& error) {
    GTEST_SKIP() << "libfabric has no sockets provider here: " << error.what();
  }
  beeline_test::expect_passed_on_cpus(1, [&](World& world) { follow(world, *oracle, script); });
}

/// Rising thresholds, jumps over several, triggers before their operation, chains, and a chain into an empty tag.
TEST(TriggerOracle, FixedScript) {
  follow({{0, 2, 0},                   // waits for two
          {0, 0, 1},    {0, 0, 1},     // fires
          {0, 4, 0},    {0, 3, 0},     // one tag, thresholds in any order
          {0, 0, 1},    {0, 0, 5},     // the second, then the first
          {0, 5, 0},                   // reached already: at once
          {1, 0, 3},    {1, 3, 0},     // a trigger without an operation, found later
          {1, 4, 0},    {1, 0, 1},     //
          {2, 1, 0, 3}, {3, 1, 0, 4},  // a chain of three, armed from its head
          {4, 2, 0},    {2, 0, 1},     // the end of that chain waits for one more
          {4, 0, 1},                   //
          {5, 1, 0, 0}, {5, 0, 1},     // a completion that nothing waits for
          {0, 9, 0},    {0, 0, 1}});
}

TEST(TriggerOracle, RandomScript) {
  beeline_test::Random random("scripts of triggers");
  std::vector<Step> script;
  for (int i = 0; i < 40; ++i) {
    const auto tag = static_cast<std::uint32_t>(random.below(tags));
    if (random.coin())
      script.push_back({tag, 0, 1 + random.below(std::size_t{3})});
    else
      script.push_back({tag, 1 + random.below(std::size_t{6}), 0, random.coin() ? random.below(tags) : -1});
  }
  for (std::uint32_t tag = 0; tag < std::uint32_t{tags}; ++tag) script.push_back({tag, 0, 6});
  follow(script);
}

#else

TEST(TriggerOracle, FixedScript) { GTEST_SKIP() << "built without libfabric (Debian: libfabric-dev), the model"; }

#endif

}  // namespace

}  // namespace beeline
