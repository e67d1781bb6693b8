// SPDX-License-Identifier: Apache-2.0
/// @file
/// network/puts: message after message from rank 0 to rank 1 on another node, with a window of messages in flight. It
/// is compared with bare UCX's puts and active messages; with UCX messages that the receiver drops, which shows the
/// cost of the receiver's copy; and with bare copies between a GPU and host memory.

#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <utility>

#include "cases/cases.hpp"
#include "cases/network_pair.hpp"
#include "peers/bare_copy.hpp"

namespace beeline::bench::network_bandwidth_cases {

namespace {

/// The steps of a rank for one window of messages, and its last step after all windows of a batch.
struct Flood {
  std::function<void()> send, receive, tell, await;
};

std::vector<double> flood(const Bench& bench, Rounds rounds, const Flood& steps) {
  return time_on_host(
      bench, rounds, [&] { bench.leads() ? steps.send() : steps.receive(); },
      [&] { bench.leads() ? steps.tell() : steps.await(); });
}

Measurement as_window(const std::shared_ptr<NetworkPair>& pair, const char* operation, Unit unit,
                      Measurement measurement) {
  measurement.operation = operation, measurement.unit = unit;
  measurement.operations_per_iteration = static_cast<double>(pair->slots());
  measurement.settings.emplace_back("window", pair->slots());
  return measurement;
}

Measurement window_of(const std::shared_ptr<NetworkPair>& pair, const char* operation, Unit unit, const char* method,
                      const Flood& steps) {
  return as_window(pair, operation, unit, network_measurement(pair, Receivers::second, method, [=](Rounds rounds) {
                     return flood(pair->bench(), rounds, steps);
                   }));
}

/// Copies between a GPU's memory and host memory through two alternating buffers: the cost of staging at one end alone.
class DoubleBufferedCopies {
 public:
  DoubleBufferedCopies(Bench& bench, std::shared_ptr<NetworkPair> pair)
      : bench_(bench), pair_(std::move(pair)), buffers_(bench.world(), buffer_count * piece_bytes, Heap::pinned) {
    for (auto& stream : streams_) stream = bench.world().make_stream();
  }

  std::vector<double> time(Rounds rounds, bool from_gpu) {
    bench_.world().barrier();
    if (!bench_.leads()) return {};
    for (std::uint32_t i = 0; i < rounds.warm_up; ++i) move_all(from_gpu);
    return time_batches(rounds, [&] {
      const std::uint64_t start = machine::clock_ns();
      for (std::uint32_t i = 0; i < rounds.iterations; ++i) move_all(from_gpu);
      return static_cast<double>(machine::clock_ns() - start);
    });
  }

 private:
  static constexpr std::size_t buffer_count = 2, piece_bytes = std::size_t{512} << 10;

  /// Copies all pieces; each piece waits until its buffer is free.
  void move_all(bool from_gpu) {
    const auto memory = pair_->buffers_in({Heap::symmetric, Heap::symmetric});
    std::size_t next = 0;
    for (std::uint64_t slot = 0; slot < pair_->slots(); ++slot)
      for (std::uint64_t before = 0; before < pair_->bytes(); before += piece_bytes, next = (next + 1) % buffer_count) {
        const std::size_t bytes = std::min<std::uint64_t>(piece_bytes, pair_->bytes() - before);
        std::byte* const buffer = buffers_.data() + next * piece_bytes;
        std::byte* const in_gpu = memory->source() + pair_->place(slot) + before;
        bench_.world().synchronize(*streams_[next]);
        from_gpu ? bare_copy(*streams_[next], buffer, in_gpu, bytes)
                 : bare_copy(*streams_[next], in_gpu, buffer, bytes);
      }
    for (const auto& stream : streams_) bench_.world().synchronize(*stream);
  }

  Bench& bench_;
  std::shared_ptr<NetworkPair> pair_;
  SymmetricArray<std::byte> buffers_;
  std::array<std::unique_ptr<Stream>, buffer_count> streams_;
};

/// Copies to and from rank 0's GPU; empty for host ranks.
std::vector<Measurement> double_buffered(const std::shared_ptr<NetworkPair>& pair, const char* operation, Unit unit) {
  Bench& bench = pair->bench();
  std::vector<Measurement> all;
  if (!bench.world().device().is_gpu()) return all;
  const auto copies = std::make_shared<DoubleBufferedCopies>(bench, pair);
  for (const bool from_gpu : {true, false}) {
    Measurement measurement{.operation = operation, .method = "bare/double_buffered", .bytes = pair->bytes()};
    measurement.time = [=](Rounds rounds) { return copies->time(rounds, from_gpu); };
    measurement.settings = {{"source", from_gpu ? "gpu" : "host"}, {"destination", from_gpu ? "host" : "gpu"}};
    all.push_back(as_window(pair, operation, unit, std::move(measurement)));
  }
  return all;
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

Measurement puts_in(const std::shared_ptr<NetworkPair>& pair, Memories memories, const char* operation, Unit unit) {
  constexpr const char* method = "network/puts";
  if (!pair->bench().world().device().is_gpu()) return window_of(pair, operation, unit, method, library_puts(pair));
  return as_window(
      pair, operation, unit,
      network_measurement(
          pair, Receivers::second, method, [=](Rounds rounds) { return pair->time_puts(memories, rounds); }, memories));
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

std::vector<Measurement> prepare_windows(Bench& bench, std::uint64_t bytes, const char* operation, Unit unit,
                                         std::initializer_list<std::uint64_t> windows = {1, 8, 64}) {
  std::vector<Measurement> all;
  std::uint64_t last = 0;
  for (const std::uint64_t wanted : windows) {
    const std::uint64_t window = std::clamp<std::uint64_t>(most_window_bytes / bytes, 1, wanted);
    if (std::exchange(last, window) == window) continue;
    const auto pair = std::make_shared<NetworkPair>(bench, bytes, window);
    const std::size_t first = all.size();
    all.push_back(window_of(pair, operation, unit, "ucx/puts", bare_puts(pair)));
    all.push_back(window_of(pair, operation, unit, "ucx/active_messages", bare_messages(pair, true)));
    all.push_back(window_of(pair, operation, unit, "ucx/sink", bare_messages(pair, false)));
    all.back().verify = {};
    for (Measurement& each : double_buffered(pair, operation, unit)) all.push_back(std::move(each));
    for (std::size_t i = first; i < all.size(); ++i) all[i].peer_of = "network/puts";
    for (const Memories& memories : all_memories(bench)) {
      all.push_back(puts_in(pair, memories, operation, unit));
      all.back().baseline = first;
    }
  }
  return all;
}

constexpr std::uint64_t kib = 1 << 10;

/// Messages of 4 KiB with 4, 8 and 32 KiB in flight, and as many as a ring has commands. Source: seed 004, windows of
/// requests to read a GPU's memory.
std::vector<Measurement> prepare_byte_windows(Bench& bench, std::uint64_t) {
  return prepare_windows(bench, 4 * kib, "window", Unit::gigabytes_per_second, {1, 2, 8, command_ring_depth});
}

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
                                                    {64 * kib}},
                                                   {"window", "network/puts", false, prepare_byte_windows}});

}  // namespace

}  // namespace beeline::bench::network_bandwidth_cases
