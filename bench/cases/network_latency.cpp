// SPDX-License-Identifier: Apache-2.0
/// @file
/// network/put_signal: ping-pong of CPU threads on different nodes, the time that a call takes of its thread, and the
/// time of a get, compared with bare UCX.

#include "cases/cases.hpp"
#include "cases/network_pair.hpp"

namespace beeline::bench::network_latency_cases {

namespace {

using Step = std::function<void()>;

/// Rank 0 sends first.
std::vector<double> ping_pong(const Bench& bench, Rounds rounds, const Step& send, const Step& await) {
  return time_on_host(bench, rounds, [&] {
    if (bench.leads()) send();
    await();
    if (!bench.leads()) send();
  });
}

Measurement round_trip_of(const std::shared_ptr<NetworkPair>& pair, const char* method, Step send, Step await) {
  return network_measurement(pair, Receivers::both, method,
                             [=](Rounds rounds) { return ping_pong(pair->bench(), rounds, send, await); });
}

Measurement put_signals(const std::shared_ptr<NetworkPair>& pair, Memories memories) {
  constexpr const char* method = "network/put_signal";
  if (!pair->bench().world().device().is_gpu())
    return round_trip_of(
        pair, method, [=] { pair->put_signal(); }, [=] { pair->await_signal(); });
  return network_measurement(
      pair, Receivers::both, method, [=](Rounds rounds) { return pair->time_put_signals(memories, rounds); }, memories);
}

std::vector<Measurement> prepare_messages(Bench& bench, std::uint64_t bytes) {
  const auto pair = std::make_shared<NetworkPair>(bench, bytes, 1);
  std::vector<Measurement> all;
  all.push_back(round_trip_of(
      pair, "ucx/put_flush", [=] { pair->bare_put_flush(); }, [=] { pair->await_bare_put(); }));
  all.push_back(round_trip_of(
      pair, "ucx/active_messages", [=] { pair->bare_send(0); }, [=] { pair->await_bare_messages(1); }));
  all[0].peer_of = all[1].peer_of = "network/put_signal";
  for (const Memories& memories : all_memories(bench)) {
    all.push_back(put_signals(pair, memories));
    all.back().baseline = 0;
  }
  return all;
}

/// Number of timed calls between two waits for their completion, which are not timed.
constexpr std::uint32_t timed_calls = 16;

/// Times the calls of rank 0. Outside the timed part, rank 0 waits for their completion and notifies rank 1, which
/// receives.
std::vector<double> time_calls(const Bench& bench, Rounds rounds, const std::function<void(std::uint64_t)>& call,
                               const Step& finish, const Step& tell, const Step& await) {
  bench.world().barrier();
  std::vector<double> times;
  if (!bench.paired()) return times;
  if (!bench.leads()) return await(), times;
  const auto some = [&] {
    const std::uint64_t start = machine::clock_ns();
    for (std::uint32_t i = 0; i < timed_calls; ++i) call(i);
    const std::uint64_t ns = machine::clock_ns() - start;
    finish();
    return static_cast<double>(ns);
  };
  for (std::uint32_t i = 0; i < rounds.warm_up; ++i) some();
  for (std::uint32_t batch = 0; batch < rounds.batches; ++batch) {
    double ns = 0;
    for (std::uint32_t i = 0; i < rounds.iterations; ++i) ns += some();
    times.push_back(ns);
  }
  tell();
  return times;
}

Measurement overhead(const std::shared_ptr<NetworkPair>& pair, const char* method,
                     std::function<void(std::uint64_t)> call, Step finish, Step tell, Step await) {
  Measurement measurement = network_measurement(pair, Receivers::second, method, [=](Rounds rounds) {
    return time_calls(pair->bench(), rounds, call, finish, tell, await);
  });
  measurement.operation = "overhead", measurement.unit = Unit::microseconds;
  measurement.operations_per_iteration = timed_calls;
  return measurement;
}

std::vector<Measurement> prepare_overhead(Bench& bench, std::uint64_t bytes) {
  require_host_ranks(bench);
  const auto pair = std::make_shared<NetworkPair>(bench, bytes, timed_calls);
  std::vector<Measurement> all;
  all.push_back(overhead(
      pair, "ucx/puts", [=](std::uint64_t slot) { pair->bare_put(slot); }, [=] { pair->bare().flush(); },
      [=] { pair->bare_signal(); }, [=] { pair->await_bare_put(); }));
  all[0].peer_of = "network/puts";
  all.push_back(overhead(
      pair, "network/puts", [=](std::uint64_t slot) { pair->put(slot); }, [=] { pair->quiet(); },
      [=] { pair->signal(); }, [=] { pair->await_signal(); }));
  all.back().baseline = 0;
  return all;
}

/// Rank 0 repeats a get, then calls `tell`. Rank 1 meanwhile calls `serve`, which waits for that signal.
Measurement gets_of(const std::shared_ptr<NetworkPair>& pair, const char* method, const Step& get, const Step& tell,
                    const Step& serve) {
  Measurement measurement =
      network_measurement(pair, Receivers::first, method, [=, &bench = pair->bench()](Rounds rounds) {
        std::vector<double> times;
        if (bench.leads()) {
          times = time_on_host(bench, rounds, get);
          tell();
        } else {
          bench.world().barrier();
          if (bench.paired()) serve();
        }
        return times;
      });
  measurement.unit = Unit::microseconds;
  return measurement;
}

Measurement library_gets(const std::shared_ptr<NetworkPair>& pair, Memories memories) {
  constexpr const char* method = "network/get";
  if (!pair->bench().world().device().is_gpu())
    return gets_of(
        pair, method, [=] { pair->get(); }, [=] { pair->signal(); }, [=] { pair->await_signal(); });
  Measurement measurement = network_measurement(
      pair, Receivers::first, method, [=](Rounds rounds) { return pair->time_gets(memories, rounds); }, memories);
  measurement.unit = Unit::microseconds;
  return measurement;
}

std::vector<Measurement> prepare_gets(Bench& bench, std::uint64_t bytes) {
  const auto pair = std::make_shared<NetworkPair>(bench, bytes, 1);
  std::vector<Measurement> all;
  all.push_back(gets_of(
      pair, "ucx/get", [=] { pair->bare_get(); }, [] {}, [] {}));
  all[0].peer_of = "network/get";
  for (const Memories& memories : all_memories(bench)) {
    all.push_back(library_gets(pair, memories));
    all.back().baseline = 0;
  }
  return all;
}

constexpr std::uint64_t most_overhead_bytes = 256 << 10;

const ListedCases network_cases(Command::network,
                                {{"message", "network/put_signal", true, prepare_messages},
                                 {"overhead", "network/puts", true, prepare_overhead, {0, most_overhead_bytes}},
                                 {"get", "network/get", true, prepare_gets}});

}  // namespace

}  // namespace beeline::bench::network_latency_cases
