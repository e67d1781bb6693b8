// SPDX-License-Identifier: Apache-2.0
/// @file
/// network/puts: message after message from rank 0 to rank 1 on another node, a window of them in flight, beside bare
/// UCX's puts and active messages; and UCX's messages that nobody keeps, which show what the receiver's copy costs.

#include <algorithm>

#include "cases/cases.hpp"
#include "cases/network_pair.hpp"

namespace beeline::bench {

namespace {

/// What one rank does for a window of messages, and behind the last window of a batch.
struct Flood {
  std::function<void()> send, receive, tell, await;
};

std::vector<double> flood(const Bench& bench, Rounds rounds, const Flood& steps) {
  return time_on_host(
      bench, rounds, [&] { bench.leads() ? steps.send() : steps.receive(); },
      [&] { bench.leads() ? steps.tell() : steps.await(); });
}

Measurement window_of(const std::shared_ptr<NetworkPair>& pair, const char* operation, Unit unit, const char* method,
                      const Flood& steps) {
  Measurement measurement = network_measurement(pair, Receivers::second, method,
                                                [=](Rounds rounds) { return flood(pair->bench(), rounds, steps); });
  measurement.operation = operation, measurement.unit = unit;
  measurement.operations_per_iteration = static_cast<double>(pair->slots());
  measurement.settings = {{"window", pair->slots()}};
  return measurement;
}

Flood library_puts(const std::shared_ptr<NetworkPair>& pair) {
  return {[=] {
            for (std::uint64_t slot = 0; slot < pair->slots(); ++slot) pair->put(slot);
            pair->quiet();
          },
          [] {}, [=] { pair->signal(); }, [=] { pair->await_signal(); }};
}

Flood bare_puts(const std::shared_ptr<NetworkPair>& pair) {
  return {[=] {
            for (std::uint64_t slot = 0; slot < pair->slots(); ++slot) pair->bare_put(slot);
            pair->bare().flush();
          },
          [] {}, [=] { pair->bare_signal(); }, [=] { pair->await_bare_put(); }};
}

/// The receiver answers each window.
Flood bare_messages(const std::shared_ptr<NetworkPair>& pair, bool are_kept) {
  return {[=] {
            for (std::uint64_t slot = 0; slot < pair->slots(); ++slot) pair->bare_send(slot, are_kept);
            pair->await_bare_messages(1);
            pair->bare().flush();
          },
          [=] {
            pair->await_bare_messages(pair->slots());
            pair->bare_answer();
          },
          [] {}, [] {}};
}

std::vector<Measurement> prepare_windows(Bench& bench, std::uint64_t bytes, const char* operation, Unit unit) {
  std::vector<Measurement> all;
  std::uint64_t last = 0;
  for (const std::uint64_t wanted : {1, 8, 64}) {
    const std::uint64_t window = std::clamp<std::uint64_t>(most_window_bytes / bytes, 1, wanted);
    if (std::exchange(last, window) == window) continue;
    const auto pair = std::make_shared<NetworkPair>(bench, bytes, window);
    const std::size_t first = all.size();
    all.push_back(window_of(pair, operation, unit, "ucx/puts", bare_puts(pair)));
    all.push_back(window_of(pair, operation, unit, "ucx/active_messages", bare_messages(pair, true)));
    all.push_back(window_of(pair, operation, unit, "ucx/sink", bare_messages(pair, false)));
    all.back().verify = {};
    for (std::size_t i = first; i < all.size(); ++i) all[i].peer_of = "network/puts";
    all.push_back(window_of(pair, operation, unit, "network/puts", library_puts(pair)));
    all.back().baseline = first;
  }
  return all;
}

constexpr std::uint64_t kib = 1 << 10;

const ListedCases network_cases(Command::network, {{"message_rate",
                                                    "network/puts",
                                                    true,
                                                    [](Bench& bench, std::uint64_t bytes) {
                                                      return prepare_windows(bench, bytes, "message_rate",
                                                                             Unit::million_messages_per_second);
                                                    },
                                                    {0, 4 * kib}},
                                                   {"put",
                                                    "network/puts",
                                                    true,
                                                    [](Bench& bench, std::uint64_t bytes) {
                                                      return prepare_windows(bench, bytes, "put",
                                                                             Unit::gigabytes_per_second);
                                                    },
                                                    {64 * kib}}});

}  // namespace

}  // namespace beeline::bench
