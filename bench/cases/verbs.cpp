// SPDX-License-Identifier: Apache-2.0
/// @file
/// Requests in the verbs-style format (docs/adapters.md) in four placements: ping-pong, a window of writes one way,
/// atomics, and messages per second over 1 to 32 queue pairs.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cases/cases.hpp"
#include "cases/verbs_pairs.hpp"
#include "harness/timed_grid.hpp"

namespace beeline::bench::verbs_cases {

namespace {

using namespace verbs_pairs;

std::string method_of(Placement placement, Protocol protocol) {
  return verbs_pairs::method_of(placement, protocol == Protocol::immediate ? "immediate" : "flag");
}

/// In assisted queues kernels themselves make the calls (`post_assisted`), so they run as in `proxy`.
[[nodiscard]] Placement caller_of(Placement placement) {
  return placement == Placement::assisted ? Placement::proxy : placement;
}

std::vector<Measurement> prepare_messages(Bench& bench, std::uint64_t bytes, Placement placement, Protocol protocol) {
  bench.require_reach_of_engines(true);
  const auto verbs = std::make_shared<Verbs>(bench, bytes, placement);
  const auto placed = std::make_shared<Placed>(bench, caller_of(placement));
  if (protocol == Protocol::immediate) verbs->post_receives();
  return {message_measurement(bench, verbs->buffers(), Receivers::both, method_of(placement, protocol),
                              [=](Rounds rounds) { return placed->ping_pong(rounds, verbs->actions(protocol)); })};
}

std::vector<Measurement> prepare_puts(Bench& bench, std::uint64_t bytes, Placement placement) {
  const auto verbs = std::make_shared<Verbs>(bench, bytes, placement);
  const auto placed = std::make_shared<Placed>(bench, caller_of(placement));
  Measurement measurement =
      message_measurement(bench, verbs->buffers(), Receivers::second, verbs_pairs::method_of(placement, completion),
                          [=](Rounds rounds) { return placed->flood(rounds, verbs->actions(Protocol::flag)); });
  measurement.operations_per_iteration = Actions::window;
  return {measurement};
}

/// A fetch-add of the peer's flag, and the wait for its completion with the old value.
struct Atomics {
  Actions actions;
  BEELINE_HOST_DEVICE bool send(const Context&, std::uint64_t) const { return true; }
  BEELINE_HOST_DEVICE bool receive(const Context&, std::uint64_t) const { return true; }
  BEELINE_HOST_DEVICE bool put(const Context& ctx, std::uint64_t sequence) const {
    VerbsCompletion done;
    return actions.queues.post(ctx, 0, fetch_add_request(actions.flag_to, 1)) &&
           actions.queues.await(ctx, 0, false, done) && done.value == sequence - 1;
  }
};

std::vector<Measurement> prepare_atomics(Bench& bench, Placement placement) {
  const auto verbs = std::make_shared<Verbs>(bench, sizeof(std::uint64_t), placement);
  const auto placed = std::make_shared<Placed>(bench, caller_of(placement));
  Measurement measurement{.operation = "fetch_add",
                          .method = verbs_pairs::method_of(placement, completion),
                          .bytes = sizeof(std::uint64_t),
                          .settings = single_thread(bench).settings()};
  measurement.time = [=](Rounds rounds) { return placed->flood(rounds, Atomics{verbs->actions(Protocol::flag)}); };
  measurement.verify = [=, &bench](std::uint64_t) {
    static_cast<void>(placed->flood({}, Atomics{verbs->actions(Protocol::flag)}));  // each checks the old value
    bench.world().barrier();
    return true;
  };
  return {measurement};
}

constexpr std::uint32_t rate_bytes = 32, most_rate_pairs = 32;

/// Messages of one pair: writes of 32 bytes, of which every eighth has a completion; waits for these at the end.
BEELINE_HOST_DEVICE inline bool flood_pair(const Context& ctx, const Actions& actions, std::uint32_t pair,
                                           std::uint32_t messages) {
  VerbsRequest request = write_request(actions.to, actions.from);
  request.remote.address += std::uint64_t{pair} * rate_bytes;
  request.local[0].address += std::uint64_t{pair} * rate_bytes;
  std::uint32_t open = 0;  // completions that have not been taken
  VerbsCompletion done;
  for (std::uint32_t i = 0; i < messages;) {
    request.signaled = i % 8 == 7 || i + 1 == messages;
    const Status status = actions.queues.try_post(pair, request);
    if (status == Status::ok) {
      open += request.signaled || actions.queues.is_assisted ? 1 : 0;
      ++i;
    } else if (status != Status::no_resource || !actions.queues.await(ctx, pair, false, done)) {
      return false;
    } else {
      --open;
    }
  }
  for (; open > 0; --open)
    if (!actions.queues.await(ctx, pair, false, done)) return false;
  return true;
}

struct RateKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, const Actions& actions, BlockTimes* times,
                                      std::uint32_t messages) const {
    if (grid.block().thread_rank() != 0) return;
    const std::uint64_t start = machine::clock_ns();
    const bool is_done = flood_pair(ctx, actions, grid.block_rank(), messages);
    times[grid.block_rank()] = {start, is_done ? machine::clock_ns() : start};
  }
};

double time_threads(const Context& ctx, const Actions& actions, std::uint32_t pairs, std::uint32_t messages) {
  const std::uint64_t start = machine::clock_ns();
  std::vector<std::thread> threads;
  for (std::uint32_t pair = 0; pair < pairs; ++pair)
    threads.emplace_back([&, pair] { static_cast<void>(flood_pair(ctx, actions, pair, messages)); });
  for (std::thread& thread : threads) thread.join();
  return static_cast<double>(machine::clock_ns() - start);
}

/// Nanoseconds of messages over `pairs` queue pairs. All numbers of pairs share one set of queue pairs: a resident
/// block for each set would take more than the whole GPU.
std::vector<double> time_rate(Bench& bench, Verbs& verbs, TimedGrid& timed, std::uint32_t pairs, Rounds rounds) {
  const std::uint32_t messages = rounds.iterations + rounds.warm_up;
  return time_batches(rounds, [&] {
    const Actions actions = verbs.actions(Protocol::flag);
    if (verbs.placement() != Placement::host)
      return timed.run({pairs, single_thread(bench).threads}, bench.leads(), RateKernel{}, actions, timed.times(),
                       messages) *
             rounds.iterations / messages;
    bench.world().barrier();
    return bench.leads()
               ? time_threads(bench.world().host_context(), actions, pairs, messages) * rounds.iterations / messages
               : 0.0;
  });
}

std::vector<Measurement> prepare_rates(Bench& bench, Placement placement) {
  const auto verbs = std::make_shared<Verbs>(bench, rate_bytes, placement, most_rate_pairs);
  const auto timed = std::make_shared<TimedGrid>(bench, most_rate_pairs);
  const auto time_with = [=, &bench](std::uint32_t pairs) {
    return [=, &bench](Rounds rounds) { return time_rate(bench, *verbs, *timed, pairs, rounds); };
  };
  std::vector<Measurement> all;
  for (std::uint32_t pairs = 1; pairs <= most_rate_pairs; pairs *= 2) {
    Measurement measurement{.operation = "write",
                            .method = verbs_pairs::method_of(placement, completion),
                            .bytes = rate_bytes,
                            .unit = Unit::million_messages_per_second,
                            .operations_per_iteration = static_cast<double>(pairs)};
    measurement.settings = {{"queue_pairs", std::uint64_t{pairs}}};
    measurement.time = time_with(pairs);
    // Each pair writes its part of the destination.
    measurement.verify = verify_messages(bench, verbs->buffers(), time_with(most_rate_pairs), Receivers::second);
    all.push_back(std::move(measurement));
  }
  return all;
}

std::vector<Case> cases_of(Placement placement) {
  constexpr SizeRange latencies{0, 256 << 10}, bandwidths{4 << 10};
  const std::string completing = verbs_pairs::method_of(placement, completion);
  std::vector<Case> all;
  for (const Protocol protocol : {Protocol::immediate, Protocol::flag})
    all.push_back(
        {"message", method_of(placement, protocol), true,
         [=](Bench& bench, std::uint64_t bytes) { return prepare_messages(bench, bytes, placement, protocol); },
         latencies});
  all.push_back({"put", completing, true,
                 [=](Bench& bench, std::uint64_t bytes) { return prepare_puts(bench, bytes, placement); }, bandwidths});
  all.push_back(
      {"fetch_add", completing, false, [=](Bench& bench, std::uint64_t) { return prepare_atomics(bench, placement); }});
  all.push_back(
      {"write", completing, false, [=](Bench& bench, std::uint64_t) { return prepare_rates(bench, placement); }});
  return all;
}

const ListedCases resident(Command::adapters, cases_of(Placement::resident));
const ListedCases proxy(Command::adapters, cases_of(Placement::proxy));
const ListedCases host(Command::adapters, cases_of(Placement::host));
const ListedCases assisted(Command::adapters, cases_of(Placement::assisted));

}  // namespace

}  // namespace beeline::bench::verbs_cases
