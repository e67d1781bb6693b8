// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The rate at which CPU threads take words that many blocks post, without queues: each block has a slot in pinned
/// memory, and waits for each of its commands.

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "beeline/core/command.hpp"
#include "cases/posted_words.hpp"
#include "harness/timed_grid.hpp"
#include "peers/bare_words.hpp"

namespace beeline::bench {

/// Writes a command into the block's slot, and waits until a CPU thread has taken it.
struct PostToTakers {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, BlockTimes* times, beeline::Command* slots,
                                      PaddedWord* taken, std::uint64_t first, std::uint32_t posts) const {
    if (grid.block().thread_rank() != 0) return;
    const std::uint32_t block = grid.block_rank();
    const std::uint64_t start = machine::clock_ns();
    for (std::uint64_t value = first; value < first + posts; ++value) {
      bare_post_command(slots[block], value);
      if (!bare_poll<std::memory_order_acquire>(grid.block(), ctx, &taken[block].value, value)) return;
    }
    times[block] = {start, machine::clock_ns()};
  }
};

/// Threads, each of which takes commands from its part of the slots, and stores the words of the commands.
class BareTakers {
 public:
  ///   words  [blocks] destination of the commands' words
  BareTakers(Bench& bench, std::uint32_t blocks, int threads, BlockWord* words)
      : bench_(bench), blocks_(blocks), threads_(threads), words_(words), slots_(bench.world(), blocks, Heap::pinned),
        taken_(bench.world(), blocks, Heap::pinned), timed_(bench, blocks) {}

  /// Collective. Nanoseconds of `posts` posts by each block.
  double rate_ns(std::uint32_t posts, unsigned block_threads) {
    std::atomic<bool> stops{false};
    std::vector<std::thread> threads;
    if (bench_.leads())
      for (int i = 0; i < threads_; ++i) threads.emplace_back([&, i] { take(static_cast<std::uint32_t>(i), stops); });
    const std::uint64_t first = next_;
    next_ += posts;
    const double ns = timed_.run({blocks_, block_threads}, bench_.leads(), PostToTakers{}, timed_.times(),
                                 slots_.data(), taken_.data(), first, posts);
    stops = true;
    for (std::thread& thread : threads) thread.join();
    return ns;
  }

 private:
  void take(std::uint32_t index, const std::atomic<bool>& stops) {
    const auto count = static_cast<std::uint32_t>(threads_);
    while (!stops)
      for (std::uint32_t slot = index; slot < blocks_; slot += count) {
        beeline::Command& posted = slots_.data()[slot];
        const std::uint64_t sequence = BareWord(posted.sequence).load(std::memory_order_acquire);
        if (sequence == taken_.data()[slot].value) continue;
        const beeline::Command command = posted;
        BareWord(words_[slot].value).store(command.local, std::memory_order_release);
        BareWord(taken_.data()[slot].value).store(sequence, std::memory_order_release);
      }
  }

  Bench& bench_;
  std::uint32_t blocks_;
  int threads_;
  BlockWord* words_;
  SymmetricArray<beeline::Command> slots_;
  SymmetricArray<PaddedWord> taken_;
  TimedGrid timed_;
  std::uint64_t next_ = 1;
};

}  // namespace beeline::bench
