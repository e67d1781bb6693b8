// SPDX-License-Identifier: Apache-2.0
// The table of triggered operations and libfabric's `sockets` provider, which has deferred work on counters, follow the
// same scripts: after each step the same operations have fired.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <stdexcept>
#include <vector>

#include "control/trigger_table.hpp"
#include "tests/support/random.hpp"
#ifdef BEELINE_HAS_LIBFABRIC
#include "tests/model/trigger_oracle.hpp"
#endif

namespace beeline {

namespace {

#ifdef BEELINE_HAS_LIBFABRIC

using beeline_test::TriggerOracle;

constexpr int tags = 6;

/// Arms operation `name` with a threshold, or, where that is 0, triggers the tag `count` times.
struct Step {
  std::uint32_t tag;
  std::uint64_t threshold, count;
  int then = -1;  ///< the tag that the operation's completion triggers
};

/// This library's side: the test is the engine.
class Table {
 public:
  explicit Table(std::uint32_t writes)
      : table_({std::uint32_t{tags}, writes, std::uint64_t{1} << 60}, {ring_.get()},
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
  std::unique_ptr<CommandRing> ring_ = std::make_unique<CommandRing>();
  TriggerTable table_;
};

void follow(const std::vector<Step>& script) {
  std::unique_ptr<TriggerOracle> oracle;
  try {
    oracle = std::make_unique<TriggerOracle>(tags, script.size());
  } catch (const std::runtime_error& error) {
    GTEST_SKIP() << "libfabric has no sockets provider here: " << error.what();
  }
  Table table(static_cast<std::uint32_t>(script.size()));
  std::size_t fired = 0;
  for (std::size_t i = 0; i < script.size(); ++i) {
    const Step& step = script[i];
    if (step.threshold > 0) {
      table.defer(i, step);
      oracle->defer(i, step.tag, step.threshold, step.then);
    } else {
      table.add(step);
      oracle->add(step.tag, step.count);
    }
    const std::set<std::size_t> expected = table.arrived();
    fired += expected.size();
    ASSERT_EQ(expected, oracle->arrived(expected.size(), std::chrono::seconds(20))) << "behind step " << i;
  }
  EXPECT_GT(fired, 0u);
}

/// Thresholds that rise, jumps over several, triggers before their operation, chains, and a chain into a null entry.
TEST(TriggerOracle, FixedScript) {
  follow({{0, 2, 0},                   // waits for two
          {0, 0, 1},    {0, 0, 1},     // fires
          {0, 4, 0},    {0, 3, 0},     // one tag, thresholds in any order
          {0, 0, 1},    {0, 0, 5},     // the second, then the first
          {0, 5, 0},                   // reached already: at once
          {1, 0, 3},    {1, 3, 0},     // a trigger without an operation, found later
          {1, 4, 0},    {1, 0, 1},     //
          {2, 1, 0, 3}, {3, 1, 0, 4},  // a chain of three, armed from its head
          {4, 2, 0},    {2, 0, 1},     // whose end waits for one more
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
