// SPDX-License-Identifier: Apache-2.0
#include "peers/bare_put_signal.hpp"

#include <cuda/atomic>

#include "harness/timed_flag.hpp"
#include "peers/bare_poll.hpp"

namespace beeline::bench {

namespace {

struct Words {
  const std::uint64_t* source;
  std::uint64_t *destination_there, *flag_there, *flag_here;
};

struct BarePutSignalPingPong {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, Words words) const {
    const auto& block = grid.block();
    if (block.thread_rank() != 0) return;
    using Word = cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>;
    time_rounds(Thread{}, loop, [&](std::uint64_t sequence) {
      return round_trip(
          loop.leads,
          [&] {
            *words.destination_there = *words.source;
            Word(*words.flag_there).store(sequence, cuda::memory_order_release);
            return true;
          },
          [&] { return bare_poll<cuda::memory_order_acquire>(block, ctx, words.flag_here, sequence); });
    });
  }
};

}  // namespace

Measurement bare_put_signal(Bench& bench, std::shared_ptr<MessageBuffers> buffers) {
  auto flag = std::make_shared<TimedFlag>(bench);
  const GroupChoice choice = single_thread(bench);
  Words words{reinterpret_cast<const std::uint64_t*>(buffers->source()), nullptr, nullptr, flag->word()};
  if (bench.paired()) {
    const int peer = static_cast<int>(bench.peer());
    words.destination_there = bench.world().at(reinterpret_cast<std::uint64_t*>(buffers->destination()), peer);
    words.flag_there = bench.world().at(flag->word(), peer);
  }
  Measurement measurement = message_measurement(bench, buffers, Receivers::both, "bare/put_signal", [=](Rounds rounds) {
    return flag->run(choice.threads, rounds, BarePutSignalPingPong{}, words);
  });
  measurement.settings = choice.settings();
  measurement.peer_of = "device/peer/signal";
  return measurement;
}

}  // namespace beeline::bench
