// SPDX-License-Identifier: Apache-2.0
/// @file
/// `signal` and `wait` compared with a bare loop on the same kind of word: the cost of the deadline and the abort word.

#include "beeline/device/signal.hpp"
#include "cases/cases.hpp"
#include "harness/timed_flag.hpp"
#include "peers/bare_ping_pong.hpp"

namespace beeline::bench::flag_latency_cases {

namespace {

template <Order signals, Order waits>
struct SignalPingPong {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, std::uint64_t* flag) const {
    const auto group = group_of<Thread>(grid.block());
    time_rounds(group, loop, [&](std::uint64_t sequence) {
      return round_trip(
          loop.leads, [&] { signal(group, ctx, flag, sequence, loop.peer, signals); },
          [&] {
            return wait(group, ctx, flag, Compare::greater_equal, sequence, loop.peer, Timeout::none(), waits) ==
                   Status::ok;
          });
    });
  }
};

template <Order signals, Order waits>
Measurement signal_ping_pong(Bench& bench, const char* order) {
  auto flag = std::make_shared<TimedFlag>(bench);
  const unsigned threads = single_thread(bench).threads;
  return flag_measurement(bench, flag, "flag", "device/peer/signal", order, [=](Rounds rounds) {
    return flag->run(threads, rounds, SignalPingPong<signals, waits>{}, flag->word());
  });
}

std::vector<Measurement> prepare(Bench& bench, std::uint64_t) {
  std::vector<Measurement> all;
  for (BareOrder order : {BareOrder::relaxed, BareOrder::acquire, BareOrder::memory})
    all.push_back(bare_flag(bench, order, "flag", "device/peer/signal"));
  all.push_back(signal_ping_pong<Order::relaxed, Order::relaxed>(bench, "relaxed"));
  all.push_back(signal_ping_pong<Order::relaxed, Order::memory>(bench, "acquire"));
  all.push_back(signal_ping_pong<Order::memory, Order::memory>(bench, "memory"));
  for (std::size_t i = 0; i < 3; ++i) all[3 + i].baseline = i;
  return all;
}

const ListedCases latency_cases(Command::latency, {{"flag", "device/peer/signal", false, prepare}});

}  // namespace

}  // namespace beeline::bench::flag_latency_cases
