// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A kernel's flag that a CPU thread answers: the part of an engine, without the engine.

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "beeline/host/world.hpp"
#include "harness/timed_kernel.hpp"
#include "peers/bare_copy.hpp"
#include "peers/bare_words.hpp"

namespace beeline::bench {

/// A thread of the host that answers each change of a flag by `answer(value)`. While it waits it yields its core as the
/// library does.
class BareAnswers {
 public:
  ///   before  value of the flag before the first question
  BareAnswers(World& world, std::uint64_t* asked, std::uint64_t before, std::function<void(std::uint64_t)> answer)
      : thread_([=, this, &world] {
          if (world.device().is_gpu()) use_gpu(world.device().index);
          std::uint64_t last = before;
          for (std::uint32_t poll = 0; !stops_; machine::back_off(++poll, world.host_context().polling)) {
            const std::uint64_t seen = BareWord(*asked).load(std::memory_order_acquire);
            if (seen == last) continue;
            answer(last = seen);
            poll = 0;
          }
        }) {}
  ~BareAnswers() {
    stops_ = true;
    thread_.join();
  }
  BareAnswers(const BareAnswers&) = delete;
  BareAnswers& operator=(const BareAnswers&) = delete;

 private:
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

struct BareQuestions {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, std::uint64_t* asked,
                                      std::uint64_t* answered) const {
    const auto& block = grid.block();
    if (block.thread_rank() != 0) return;
    time_rounds(Thread{}, loop, [&](std::uint64_t sequence) {
      BareWord(*asked).store(sequence, std::memory_order_release);
      return bare_poll<std::memory_order_acquire>(block, ctx, answered, sequence);
    });
  }
};

}  // namespace beeline::bench
