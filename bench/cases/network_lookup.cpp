// SPDX-License-Identifier: Apache-2.0
/// @file
/// network/put_signal: ping-pong to random offsets in many segments; the target looks up each segment. Beside it the
/// look-up alone among as many buffers: in a list that is searched from its start, as in seed 004, and in an interval
/// map.

#include <algorithm>
#include <iterator>
#include <map>

#include "beeline/core/error.hpp"
#include "cases/cases.hpp"
#include "cases/network_pair.hpp"
#include "harness/random.hpp"

namespace beeline::bench::network_lookup_cases {

namespace {

/// Ranks 0 and 1 put a word into any of many segments. If puts use memory keys, they put a message that is too long for
/// a command.
class Segments {
 public:
  Segments(Bench& bench, std::uint64_t count)
      : bench_(bench), words_(bench.world().config().memory_keys == MemoryKeys::always ? words_by_key : 1),
        signals_(bench.world(), 1) {
    for (std::uint64_t i = 0; i < count; ++i) made_.push_back(bench.world().create_segment(MemoryKind::host, bytes));
    if (words_ > 1) get_keys();
  }
  ~Segments() {
    try {
      for (const Segment& each : made_) bench_.world().destroy_segment(each.id);
    } catch (const Error&) {
      // The world has ended, and the error was reported.
    }
  }
  Segments(const Segments&) = delete;
  Segments& operator=(const Segments&) = delete;

  std::vector<double> ping_pong(Rounds rounds) {
    return time_on_host(bench_, rounds, [&] {
      if (bench_.leads()) send();
      await();
      if (!bench_.leads()) send();
    });
  }
  [[nodiscard]] std::uint64_t message_bytes() const { return words_ * sizeof(std::uint64_t); }
  /// Whether the word of the last round is at its destination.
  [[nodiscard]] bool has_come() { return !bench_.paired() || *place(sequence_) == sequence_; }

 private:
  [[nodiscard]] std::uint64_t* start_of(const Segment& segment) const {
    return reinterpret_cast<std::uint64_t*>(segment.parts[static_cast<std::size_t>(bench_.world().rank())].address);
  }
  [[nodiscard]] std::uint64_t* place(std::uint64_t sequence) const {
    return start_of(made_[random_word(made_.size(), sequence) % made_.size()]);
  }
  /// Gets the key of every segment, which the first put into it requests.
  void get_keys() {
    const Context& ctx = bench_.world().host_context();
    for (const Segment& each : made_) {
      if (bench_.paired()) put(Thread{}, ctx, start_of(each), message_, words_, bench_.peer());
      bench_.require_ok(quiet(Thread{}, ctx), "a put into a segment");
    }
    bench_.world().barrier();
  }
  void send() {
    const std::uint64_t sequence = sequence_ + (bench_.leads() ? 1 : 0);
    message_[0] = sequence;
    put_signal(Thread{}, bench_.world().host_context(), place(sequence), message_, words_, &signals_.data()->value,
               sequence, bench_.peer());
  }
  void await() {
    ++sequence_;
    bench_.require_ok(wait(Thread{}, bench_.world().host_context(), &signals_.data()->value, Compare::equal, sequence_,
                           bench_.peer()),
                      "a put into a segment");
  }

  static constexpr std::size_t bytes = 4096;
  static constexpr std::uint64_t words_by_key = 8;
  Bench& bench_;
  const std::uint64_t words_;
  std::uint64_t message_[words_by_key]{};
  SymmetricArray<PaddedWord> signals_;
  std::vector<Segment> made_;
  std::uint64_t sequence_ = 0;
};

struct Buffer {
  std::uintptr_t first;
  std::size_t bytes;
  [[nodiscard]] bool holds(std::uintptr_t address) const { return address - first < bytes; }
};

/// Registered buffers without a library.
class Buffers {
 public:
  explicit Buffers(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      list_.push_back({(2 * i + 1) * bytes, bytes});
      map_[list_.back().first] = list_.back();
    }
  }

  ///   in_map  whether the map is searched, or the list
  std::vector<double> time(Rounds rounds, bool in_map) {
    return time_batches(rounds, [&] {
      const std::uint64_t start = machine::clock_ns();
      for (std::uint32_t i = 0; i < rounds.iterations; ++i) {
        const std::uintptr_t address = list_[random_word(list_.size(), ++looked_up_) % list_.size()].first + 8;
        has_found_all_ = has_found_all_ && (in_map ? found_in_map(address) : found_in_list(address));
      }
      return static_cast<double>(machine::clock_ns() - start);
    });
  }
  [[nodiscard]] bool has_found_all() const { return has_found_all_; }

 private:
  [[nodiscard]] bool found_in_list(std::uintptr_t address) const {
    return std::any_of(list_.begin(), list_.end(), [&](const Buffer& each) { return each.holds(address); });
  }
  [[nodiscard]] bool found_in_map(std::uintptr_t address) const {
    const auto behind = map_.upper_bound(address);
    return behind != map_.begin() && std::prev(behind)->second.holds(address);
  }

  static constexpr std::size_t bytes = 4096;
  std::vector<Buffer> list_;
  std::map<std::uintptr_t, Buffer> map_;
  std::uint64_t looked_up_ = 0;
  bool has_found_all_ = true;
};

Measurement bare_lookup(const std::shared_ptr<Buffers>& buffers, std::uint64_t count, bool in_map) {
  Measurement measurement{.operation = "lookup", .method = in_map ? "bare/interval_map" : "bare/list"};
  measurement.settings = {{"segments", count}};
  measurement.time = [=](Rounds rounds) { return buffers->time(rounds, in_map); };
  measurement.verify = [=](std::uint64_t) { return buffers->has_found_all(); };
  return measurement;
}

Case among(std::uint64_t count) {
  const auto prepare = [count](Bench& bench, std::uint64_t) -> std::vector<Measurement> {
    require_host_ranks(bench);
    require_two_nodes(bench);
    const auto segments = std::make_shared<Segments>(bench, count);
    Measurement measurement{.operation = "lookup", .method = "network/put_signal", .bytes = segments->message_bytes()};
    measurement.operations_per_iteration = 2;
    measurement.settings = {{"segments", count}};
    measurement.time = [segments](Rounds rounds) { return segments->ping_pong(rounds); };
    measurement.verify = [segments](std::uint64_t) {
      static_cast<void>(segments->ping_pong({}));
      return segments->has_come();
    };
    const auto buffers = std::make_shared<Buffers>(count);
    return {bare_lookup(buffers, count, false), bare_lookup(buffers, count, true), measurement};
  };
  return {"lookup", "network/put_signal", false, prepare};
}

const ListedCases network_cases(Command::network, {among(1), among(10), among(100), among(1'000), among(10'000)});

}  // namespace

}  // namespace beeline::bench::network_lookup_cases
