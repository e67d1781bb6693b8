// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How far rank 1's clock, as its kernels read it, is ahead of rank 0's clock: measured by round trips of messages.

#include <array>
#include <cstdint>
#include <span>

#include "beeline/host/launch.hpp"
#include "harness/bench.hpp"
#include "peers/bare_words.hpp"

namespace beeline::bench {

/// The offset, and its largest error: half of the shortest round trip.
struct ClockOffset {
  std::int64_t ns = 0;
  std::uint64_t round_trip_ns = ~std::uint64_t{0};
};

/// The words of `ExchangeClocks`, on each rank.
struct ClockWords {
  PaddedWord asked, answered, stamp;
};

struct ExchangeClocks {
  static constexpr std::uint64_t rounds = 200;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, ClockWords* words, ClockOffset* found,
                                      std::uint64_t first, std::uint32_t peer, bool leads) const {
    const auto& block = grid.block();
    if (block.thread_rank() != 0) return;
    ClockWords* const there = ctx.at(words, peer);
    ClockOffset best;
    for (std::uint64_t round = first; round < first + rounds; ++round) {
      const std::uint64_t asked_at = machine::clock_ns();
      if (leads) BareWord(there->asked.value).store(round, std::memory_order_release);
      std::uint64_t* const awaited = leads ? &words->answered.value : &words->asked.value;
      if (!bare_poll<std::memory_order_acquire>(block, ctx, awaited, round)) return;
      const std::uint64_t now = machine::clock_ns();
      if (!leads) {
        BareWord(there->stamp.value).store(now, std::memory_order_relaxed);
        BareWord(there->answered.value).store(round, std::memory_order_release);
      } else if (const std::uint64_t whole = now - asked_at; whole < best.round_trip_ns) {
        const std::uint64_t stamp = BareWord(words->stamp.value).load(std::memory_order_relaxed);
        best = {static_cast<std::int64_t>(stamp - asked_at - whole / 2), whole};
      }
    }
    *found = best;
  }
};

class Clocks {
 public:
  /// Collective.
  explicit Clocks(Bench& bench) : bench_(bench), words_(bench.world(), 1), found_(bench.world(), 1) {}

  /// Collective; ranks 0 and 1 exchange messages. Only rank 0's result is valid.
  ClockOffset compare() {
    World& world = bench_.world();
    world.barrier();
    if (bench_.paired()) {
      launch(world, {.threads = block_threads, .waits = true}, ExchangeClocks{}, words_.data(), found_.data(), next_,
             bench_.peer(), bench_.leads());
      world.synchronize();
    }
    next_ += ExchangeClocks::rounds;
    ClockOffset found;
    world.copy(&found, found_.data(), sizeof found);
    return found;
  }

 private:
  static constexpr unsigned block_threads = 32;

  Bench& bench_;
  SymmetricArray<ClockWords> words_;
  SymmetricArray<ClockOffset> found_;
  std::uint64_t next_ = 1;
};

}  // namespace beeline::bench
