// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Loops that are timed inside one kernel, by the clock of the device that runs it.

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "beeline/device/grid.hpp"
#include "beeline/host/launch.hpp"
#include "harness/measurement.hpp"

namespace beeline::bench {

/// The rounds of a timed kernel, and their time stamps.
struct Loop {
  std::uint64_t* stamps;  ///< [batches + 1] times of this rank's clock, written by the kernel
  std::uint64_t first;    ///< sequence number of the last round of the previous launch
  Rounds rounds;
  std::uint32_t peer;
  bool leads;  ///< whether this rank sends first
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t last() const {
    return first + rounds.warm_up + std::uint64_t{rounds.iterations} * rounds.batches;
  }
};

/// The group that carries out a benchmark's operation: `Wanted` on a GPU, the whole team on a host rank.
template <class Wanted, class BlockGroup>
[[nodiscard]] BEELINE_HOST_DEVICE auto group_of(const BlockGroup& block) {
  if constexpr (std::is_same_v<BlockGroup, Block>)
    return Wanted{};
  else
    return block;
}

/// Calls `round(sequence)` for each round of the loop until it returns false, and stamps the batches.
template <class Group, class Round>
BEELINE_HOST_DEVICE void time_rounds(const Group& group, const Loop& loop, Round round) {
  std::uint64_t sequence = loop.first;
  for (std::uint32_t i = 0; i < loop.rounds.warm_up; ++i)
    if (!round(++sequence)) return;
  for (std::uint32_t batch = 0; batch < loop.rounds.batches; ++batch) {
    if (group.thread_rank() == 0) loop.stamps[batch] = machine::clock_ns();
    for (std::uint32_t i = 0; i < loop.rounds.iterations; ++i)
      if (!round(++sequence)) return;
  }
  if (group.thread_rank() == 0) loop.stamps[loop.rounds.batches] = machine::clock_ns();
}

/// Rounds of which only a part is timed: the stamps are of a clock that stops in between.
///   round(sequence)  returns the nanoseconds to add; 0: the round failed
template <class Round>
BEELINE_HOST_DEVICE void time_parts(const Loop& loop, const Round& round) {
  std::uint64_t counted = 1;
  for (std::uint64_t sequence = loop.first + 1, i = 0; sequence <= loop.last(); ++sequence) {
    const std::uint64_t part = round(sequence);
    if (part == 0) return;
    if (sequence <= loop.first + loop.rounds.warm_up) continue;
    if (i++ % loop.rounds.iterations == 0) loop.stamps[(i - 1) / loop.rounds.iterations] = counted;
    counted += part;
  }
  loop.stamps[loop.rounds.batches] = counted;
}

/// Polls the clock for `ns`.
BEELINE_HOST_DEVICE inline void rest(const Context& ctx, std::uint64_t ns) {
  const std::uint64_t start = machine::clock_ns();
  for (std::uint32_t poll = 0; machine::clock_ns() - start < ns; ++poll) machine::back_off(poll, ctx.polling);
}

/// One round trip: the leader sends first, the other rank answers. Both functions return whether they succeeded; a
/// `send` that cannot fail returns nothing.
template <class Send, class Receive>
BEELINE_HOST_DEVICE bool round_trip(bool leads, Send send, Receive receive) {
  const auto sent = [&send] {
    if constexpr (std::is_void_v<decltype(send())>)
      return send(), true;
    else
      return send();
  };
  if (leads && !sent()) return false;
  if (!receive()) return false;
  return leads || sent();
}

/// Launches timed kernels on the ranks that take part, with the same rounds on each.
class TimedKernel {
 public:
  static constexpr std::uint32_t most_batches = 64;

  /// Collective.
  explicit TimedKernel(Bench& bench) : TimedKernel(bench, bench.world()) {}
  /// Kernels get the context of `team`, in which ranks 0 and 1 have the same numbers as in the world.
  TimedKernel(Bench& bench, Team& team) : bench_(bench), team_(team), stamps_(bench.world(), most_batches + 1) {}

  /// Sequence number of the last round.
  [[nodiscard]] std::uint64_t last() const { return last_; }

  /// Collective. Runs `kernel(grid, context, loop, args...)` on this rank if it `takes_part`, in one block; returns the
  /// batches' nanoseconds by this rank's clock.
  template <class Kernel, class... Args>
  std::vector<double> run(unsigned threads, bool takes_part, Rounds rounds, Kernel kernel, Args... args) {
    const Loop loop{stamps_.data(), last_, rounds, bench_.peer(), bench_.leads()};
    last_ = loop.last();
    World& world = bench_.world();
    world.barrier();
    if (!takes_part) return {};
    require((resident_blocks<Kernel, Loop, Args...>(world, threads)) > 0, Status::no_resource,
            "a block of " + std::to_string(threads) + " threads needs more registers than this device has");
    std::vector<std::uint64_t> stamps(rounds.batches + 1);
    world.copy(stamps_.data(), stamps.data(), stamps.size() * sizeof stamps[0]);
    launch(team_, {.blocks = 1, .threads = threads, .waits = true}, kernel, loop, args...);
    world.synchronize();
    world.copy(stamps.data(), stamps_.data(), stamps.size() * sizeof stamps[0]);
    require(stamps.back() != 0, Status::internal, "a timed kernel ended before its last round");
    std::vector<double> times;
    for (std::size_t i = 1; i < stamps.size(); ++i) times.push_back(static_cast<double>(stamps[i] - stamps[i - 1]));
    return times;
  }

 private:
  Bench& bench_;
  Team& team_;
  SymmetricArray<std::uint64_t> stamps_;
  std::uint64_t last_ = 0;
};

}  // namespace beeline::bench
