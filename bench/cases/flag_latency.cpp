// SPDX-License-Identifier: Apache-2.0
/// @file
/// `signal` and `wait` beside a bare loop on the same kind of word: what the deadline and the abort word cost.

#include "beeline/device/signal.hpp"
#include "cases/cases.hpp"
#include "harness/timed_flag.hpp"
#include "peers/bare_flag.hpp"

namespace beeline::bench {

namespace {

template <Order order>
struct SignalPingPong {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, std::uint64_t* flag) const {
    const auto group = group_of<Thread>(grid.block());
    time_rounds(group, loop, [&](std::uint64_t sequence) {
      return round_trip(
          loop.leads,
          [&] {
            signal(group, ctx, flag, sequence, loop.peer, order);
            return true;
          },
          [&] { return wait(group, ctx, flag, Compare::greater_equal, sequence, loop.peer) == Status::ok; });
    });
  }
};

template <Order order>
Measurement signal_ping_pong(Session& session, const char* name, std::size_t baseline) {
  auto flag = std::make_shared<TimedFlag>(session);
  const unsigned threads = single_thread(session).threads;
  Measurement measurement = flag_measurement(session, flag, "flag", "device/peer/signal", name, [=](Rounds rounds) {
    return flag->run(threads, rounds, SignalPingPong<order>{}, flag->word());
  });
  measurement.baseline = baseline;
  return measurement;
}

std::vector<Measurement> prepare(Session& session, std::uint64_t) {
  std::vector<Measurement> all;
  for (BareOrder order : {BareOrder::relaxed, BareOrder::acquire, BareOrder::memory})
    all.push_back(bare_flag(session, order, "flag", "device/peer/signal"));
  // `wait` acquires, whatever the order of the signal.
  all.push_back(signal_ping_pong<Order::relaxed>(session, "relaxed", 1));
  all.push_back(signal_ping_pong<Order::memory>(session, "memory", 2));
  return all;
}

}  // namespace

Case flag_latency() { return {"flag", "device/peer/signal", false, prepare}; }

}  // namespace beeline::bench
