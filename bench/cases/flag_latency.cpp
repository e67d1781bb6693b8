// SPDX-License-Identifier: Apache-2.0
/// @file
/// `signal` and `wait` beside a bare loop on the same kind of word: what the deadline and the abort word cost.

#include "beeline/device/signal.hpp"
#include "cases/cases.hpp"
#include "harness/group_choice.hpp"
#include "harness/timed_kernel.hpp"
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

/// A word on each of the two ranks, and the loops over it.
class Flag {
 public:
  explicit Flag(Session& session) : session_(session), word_(session.world(), 1), timed_(session) {}

  template <Order order>
  std::vector<double> time_library(Rounds rounds) {
    return timed_.run(threads(), session_.paired(), rounds, SignalPingPong<order>{}, word());
  }

  template <BareOrder order>
  std::vector<double> time_bare(Rounds rounds) {
    std::uint64_t* there = session_.paired() ? session_.world().at(word(), static_cast<int>(session_.peer())) : nullptr;
    return timed_.run(threads(), session_.paired(), rounds, BareFlagPingPong<order>{}, word(), there);
  }

  /// Whether the last signal was the last one sent: none was lost, none came twice.
  [[nodiscard]] bool complete() {
    std::uint64_t observed = 0;
    session_.world().copy(&observed, word(), sizeof observed);
    return observed == timed_.last();
  }

 private:
  [[nodiscard]] std::uint64_t* word() const { return &word_.data()->value; }
  [[nodiscard]] unsigned threads() const { return choose_group(session_, 8, 8, 1).threads; }

  Session& session_;
  SymmetricArray<PaddedWord> word_;
  TimedKernel timed_;
};

Measurement measurement_of(Session& session, std::shared_ptr<Flag> flag, std::string method, const char* order,
                           std::function<std::vector<double>(Flag&, Rounds)> time) {
  Measurement measurement{.operation = "flag", .method = std::move(method), .bytes = sizeof(std::uint64_t)};
  measurement.operations_per_iteration = 2;
  measurement.settings = choose_group(session, 8, 8, 1).settings();
  measurement.settings.emplace_back("order", order);
  measurement.time = [=](Rounds rounds) { return time(*flag, rounds); };
  measurement.verify = [=, &session](std::uint64_t) {
    static_cast<void>(time(*flag, {}));
    return !session.paired() || flag->complete();
  };
  return measurement;
}

std::vector<Measurement> prepare(Session& session, std::uint64_t) {
  auto flag = std::make_shared<Flag>(session);
  const auto add = [&](std::string method, const char* order, auto time) {
    return measurement_of(session, flag, std::move(method), order, time);
  };
  const auto bare = [&](const char* order, auto time) {
    Measurement measurement = add("bare/flag", order, time);
    measurement.peer_of = "device/peer/signal";
    return measurement;
  };
  std::vector<Measurement> all = {
      bare("relaxed", [](Flag& f, Rounds rounds) { return f.time_bare<BareOrder::relaxed>(rounds); }),
      bare("acquire", [](Flag& f, Rounds rounds) { return f.time_bare<BareOrder::acquire>(rounds); }),
      bare("memory", [](Flag& f, Rounds rounds) { return f.time_bare<BareOrder::memory>(rounds); }),
      add("device/peer/signal", "relaxed",
          [](Flag& f, Rounds rounds) { return f.time_library<Order::relaxed>(rounds); }),
      add("device/peer/signal", "memory", [](Flag& f, Rounds rounds) { return f.time_library<Order::memory>(rounds); }),
  };
  all[3].baseline = 1;  // `wait` acquires, whatever the order of the signal
  all[4].baseline = 2;
  return all;
}

}  // namespace

Case flag_latency() { return {"flag", "device/peer/signal", false, prepare}; }

}  // namespace beeline::bench
