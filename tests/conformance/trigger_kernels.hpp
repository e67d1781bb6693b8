// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Definitions that cases of triggered operations share, whatever carries these out.

#include <algorithm>
#include <cstdint>

#include "tests/conformance/queue_cases.hpp"
#include "tests/conformance/rank_test.hpp"

namespace beeline_test {

using namespace beeline;

struct TagArguments {
  std::uint32_t tag, times;
  bool waits;  ///< until the fired operations are complete
  TriggerChannel channel;
};
/// Every block triggers a tag `times` times.
struct TagKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, TagArguments a) const {
    for (std::uint32_t i = 0; i < a.times; ++i)
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, trigger(grid.block(), ctx, a.channel, a.tag));
    if (a.waits) BEELINE_DEVICE_CHECK_EQ(report, Status::ok, quiet(grid.block(), ctx, a.channel, a.tag));
  }
};

inline void trigger_by_blocks(RankTest& test, const Triggers& triggers, std::uint32_t tag, std::uint32_t blocks,
                              std::uint32_t times, bool waits = true) {
  test.run(test.shape(blocks, false), TagKernel{}, TagArguments{tag, times, waits, triggers.channel()},
           "triggers of a tag");
}

struct EarlyArguments {
  std::uint64_t *source, *destination, *arrived, *consumed;  ///< [words], [words], signals
  std::uint32_t words, rounds, ahead, behind;
  TriggerChannel channel;
};
/// Writes and triggers; waits for the signal from behind, checks every word, and lets the rank behind write again.
struct EarlyKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, EarlyArguments a) const {
    const auto& block = grid.block();
    for (std::uint64_t round = 1; round <= a.rounds; ++round) {
      for (std::uint32_t i = block.thread_rank(); i < a.words; i += block.size()) a.source[i] = round * 1000 + i;
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, trigger(block, ctx, a.channel, 1));
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(block, ctx, a.arrived, Compare::greater_equal, round, a.behind));
      for (std::uint32_t i = block.thread_rank(); i < a.words; i += block.size())
        BEELINE_DEVICE_CHECK_EQ(report, round * 1000 + i, load_value(&a.destination[i]));
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, signal(block, ctx, a.consumed, round, a.behind));
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(block, ctx, a.consumed, Compare::greater_equal, round, a.ahead));
    }
  }
};

/// Sends `rounds` rounds of `words` words to the rank ahead, all armed beforehand.
inline void send_rounds(RankTest& test, const TriggerOptions& options, std::uint32_t words, std::uint32_t rounds) {
  if (under_thread_sanitizer) {  // it finds a race in the first rounds, and looks at each word
    words = std::min(words, 2'000u);
    rounds = std::min(rounds, 10u);
  }
  World& world = test.world();
  Triggers triggers(world, options);
  const SymmetricArray<std::uint64_t> source(world, words), destination(world, words);
  const Signals signals(world, 2);
  for (std::uint64_t round = 1; round <= rounds; ++round)
    triggers.arm(TriggeredOperation::put(destination.data(), source.data(), words, test.ahead(1))
                     .and_signal(signals.data(), round),
                 {.tag = 1, .threshold = round});
  world.barrier();
  test.run(test.shape(1, true), EarlyKernel{},
           EarlyArguments{source.data(), destination.data(), signals.data(), signals.data() + 1, words, rounds,
                          static_cast<std::uint32_t>(test.ahead(1)), static_cast<std::uint32_t>(test.behind(1)),
                          triggers.channel()},
           "data and triggers");
  world.barrier();
}

}  // namespace beeline_test
