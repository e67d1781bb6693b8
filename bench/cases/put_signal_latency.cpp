// SPDX-License-Identifier: Apache-2.0
/// @file
/// device/peer/signal: the kernel stores directly at the destination, then releases a signal; ping-pong inside one
/// kernel.

#include "beeline/device/put_get.hpp"
#include "beeline/device/signaled_word.hpp"
#include "cases/cases.hpp"
#include "harness/group_choice.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_kernel.hpp"
#include "peers/bare_ping_pong.hpp"

namespace beeline::bench::put_signal_latency_cases {

namespace {

template <class Wanted>
struct PutSignalPingPong {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, std::uint64_t* arrived,
                                      std::byte* destination, const std::byte* source, std::uint64_t bytes) const {
    const auto group = group_of<Wanted>(grid.block());
    time_rounds(group, loop, [&](std::uint64_t sequence) {
      return round_trip(
          loop.leads, [&] { put_signal(group, ctx, destination, source, bytes, arrived, sequence, loop.peer); },
          [&] { return wait(group, ctx, arrived, Compare::greater_equal, sequence, loop.peer) == Status::ok; });
    });
  }
};

/// Eight bytes next to their signal: one store, no fence.
struct SignaledWordPingPong {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, SignaledWord* word,
                                      std::uint64_t* destination, const std::uint64_t* source) const {
    if (grid.block().thread_rank() != 0) return;
    time_rounds(Thread{}, loop, [&](std::uint64_t sequence) {
      return round_trip(
          loop.leads, [&] { return put_signal(ctx, word, *source, sequence, loop.peer) == Status::ok; },
          [&] { return wait(ctx, word, Compare::greater_equal, sequence, *destination, loop.peer) == Status::ok; });
    });
  }
};

/// Data that the groups of one message size share.
struct State {
  State(Bench& bench_in, std::uint64_t bytes)
      : bench(bench_in), buffers(std::make_shared<MessageBuffers>(bench, bytes)), signals(bench.world(), 1),
        word(bench.world(), 1), timed(bench) {}

  /// The receiver stores the value where the messages of other methods arrive.
  std::vector<double> time_word(Rounds rounds) {
    return timed.run(single_thread(bench).threads, bench.paired(), rounds, SignaledWordPingPong{}, word.data(),
                     reinterpret_cast<std::uint64_t*>(buffers->destination()),
                     reinterpret_cast<const std::uint64_t*>(buffers->source()));
  }

  std::vector<double> time(const GroupChoice& choice, Rounds rounds) {
    return with_group(choice.kind, [&]<class Wanted>(Wanted) {
      return timed.run(choice.threads, bench.paired(), rounds, PutSignalPingPong<Wanted>{}, &signals.data()->value,
                       buffers->destination(), buffers->source(), buffers->bytes());
    });
  }

  Bench& bench;
  std::shared_ptr<MessageBuffers> buffers;
  SymmetricArray<PaddedWord> signals;
  SymmetricArray<SignaledWord> word;
  TimedKernel timed;
};

Measurement signaled_word(Bench& bench, std::shared_ptr<State> state) {
  Measurement measurement = message_measurement(bench, state->buffers, Receivers::both, "device/peer/signal",
                                                [=](Rounds rounds) { return state->time_word(rounds); });
  measurement.settings = single_thread(bench).settings();
  measurement.settings.emplace_back("layout", "signaled_word");
  measurement.baseline = 0;
  return measurement;
}

std::vector<Measurement> prepare(Bench& bench, std::uint64_t bytes) {
  constexpr unsigned store_bytes = 16, most_threads = 512;
  auto state = std::make_shared<State>(bench, bytes);
  std::vector<Measurement> all;
  const bool one_word = bytes == sizeof(std::uint64_t);
  if (one_word) {
    all.push_back(bare_put_signal(bench, state->buffers));
    all.push_back(signaled_word(bench, state));
  }
  for (const GroupChoice& choice : candidate_groups(bench, bytes, store_bytes, most_threads)) {
    all.push_back(message_measurement(bench, state->buffers, Receivers::both, "device/peer/signal",
                                      [=](Rounds rounds) { return state->time(choice, rounds); }));
    all.back().settings = choice.settings();
    if (one_word) all.back().baseline = 0;
  }
  return all;
}

const ListedCases latency_cases(Command::latency, {{"message", "device/peer/signal", true, prepare}});

}  // namespace

}  // namespace beeline::bench::put_signal_latency_cases
