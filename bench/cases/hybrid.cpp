// SPDX-License-Identifier: Apache-2.0
/// @file
/// host/hybrid/pipelined: puts that go directly up to a threshold, above it in chunks through pinned buffers of the
/// sender. Each choice is forced, beside the library's own choice, with several sizes of chunks and numbers of chunks
/// in flight, and between all memories of the two ranks. The bare peer moves the same chunks through two buffers,
/// without the library. Source: seed 000, figures 3.13, 4.6 and 4.7.

#include <atomic>
#include <thread>

#include "beeline/device/signal.hpp"
#include "beeline/host/hybrid_transfers.hpp"
#include "cases/cases.hpp"
#include "cases/network_pair.hpp"
#include "peers/bare_copy.hpp"

namespace beeline::bench::hybrid_cases {

namespace {

constexpr const char* method = "host/hybrid/pipelined";
constexpr std::size_t chunk_sizes[] = {std::size_t{128} << 10, std::size_t{512} << 10, std::size_t{2} << 20};
constexpr std::uint32_t chunk_counts[] = {2, 4};

/// Largest messages between host memory and GPU memory: those of all kinds together fit into the pinned heap.
constexpr std::uint64_t most_pinned = std::uint64_t{4} << 20;

/// The object under test, and the two buffers of its bare peer.
struct Staging {
  explicit Staging(World& world)
      : hybrid(world, {.chunk_bytes = chunk_sizes[2], .chunks = chunk_counts[1]}),
        bare(world, 2 * chunk_sizes[2], Heap::pinned) {}
  HybridTransfers hybrid;
  SymmetricArray<std::byte> bare;
};

std::shared_ptr<std::byte> memory_in(World& world, Heap heap, std::uint64_t bytes) {
  const Heap where = world.device().is_gpu() ? heap : Heap::symmetric;  // both heaps of host ranks are host memory
  const auto made = std::make_shared<SymmetricArray<std::byte>>(world, bytes, where);
  return {made, made->data()};
}

/// Messages between two kinds of memory, each followed by a signal from a CPU thread.
class Puts {
 public:
  /// Collective.
  Puts(Bench& bench, std::uint64_t bytes, Memories memories, std::shared_ptr<Staging> staging)
      : bench_(bench), staging_(std::move(staging)), hybrid_(staging_->hybrid),
        arrived_(bench.world(), 1, Heap::pinned), out_(bench.world().make_stream()), in_(bench.world().make_stream()) {
    const std::shared_ptr<std::byte> source = memory_in(bench.world(), memories.source, bytes);
    buffers_ =
        std::make_shared<MessageBuffers>(bench, bytes, source, memory_in(bench.world(), memories.destination, bytes));
    for (auto& event : filled_) event = out_->make_event();
    for (auto& event : emptied_) event = in_->make_event();
  }

  [[nodiscard]] const std::shared_ptr<MessageBuffers>& buffers() const { return buffers_; }

  std::vector<double> ping_pong(const HybridOptions& options, Rounds rounds) {
    hybrid_.set(options);
    return time_on_host(bench_, rounds, [this] {
      if (bench_.leads()) put(), tell();
      hear();
      if (!bench_.leads()) put(), tell();
    });
  }
  std::vector<double> flood(const HybridOptions& options, Rounds rounds) {
    hybrid_.set(options);
    return time_on_host(
        bench_, rounds,
        [this] {
          if (bench_.leads())
            hybrid_.put_on_stream(buffers_->destination(), buffers_->source(), buffers_->bytes(), peer());
        },
        [this] {
          if (!bench_.leads()) return hear();
          bench_.world().synchronize();
          tell();
        });
  }
  /// The same copies without the library.
  std::vector<double> bare_flood(std::size_t chunk_bytes, Rounds rounds) {
    return time_on_host(
        bench_, {1, rounds.batches, rounds.warm_up == 0 ? 0u : 1u},
        [=, this] {
          if (!bench_.leads()) return;
          bench_.world().device().is_gpu() ? by_streams(chunk_bytes, rounds) : by_threads(chunk_bytes, rounds);
        },
        [this] { bench_.leads() ? tell() : hear(); });
  }

 private:
  [[nodiscard]] int peer() const { return static_cast<int>(bench_.peer()); }
  void put() { hybrid_.put(buffers_->destination(), buffers_->source(), buffers_->bytes(), peer()); }
  void tell() {
    bench_.require_ok(signal(Thread{}, bench_.world().host_context(), arrived_.data(), ++sent_, bench_.peer()),
                      "a signal behind hybrid puts");
  }
  void hear() {
    bench_.require_ok(
        wait(Thread{}, bench_.world().host_context(), arrived_.data(), Compare::greater_equal, ++heard_, bench_.peer()),
        "hybrid puts");
  }
  [[nodiscard]] std::byte* there() const { return bench_.world().at(buffers_->destination(), peer()); }

  /// Calls `move(number, offset, bytes)` for all chunks of a batch of messages.
  template <class Move>
  void for_chunks(std::size_t chunk_bytes, Rounds rounds, const Move& move) const {
    std::uint64_t number = 0;
    for (std::uint32_t message = 0; message < rounds.iterations; ++message)
      for (std::uint64_t offset = 0; offset < buffers_->bytes(); offset += chunk_bytes)
        move(number++, offset, std::min<std::uint64_t>(chunk_bytes, buffers_->bytes() - offset));
  }
  [[nodiscard]] std::byte* buffer(std::uint64_t number, std::size_t chunk_bytes) const {
    return staging_->bare.data() + number % 2 * chunk_bytes;
  }
  void by_threads(std::size_t chunk_bytes, Rounds rounds) {
    std::atomic<std::uint64_t> filled{0}, emptied{0};
    const auto await = [](const std::atomic<std::uint64_t>& count, std::uint64_t least) {
      while (count.load(std::memory_order_acquire) < least) std::this_thread::yield();
    };
    std::thread deliver([&] {
      for_chunks(chunk_bytes, rounds, [&](std::uint64_t number, std::uint64_t offset, std::uint64_t bytes) {
        await(filled, number + 1);
        bare_copy(*in_, there() + offset, buffer(number, chunk_bytes), bytes);
        emptied.store(number + 1, std::memory_order_release);
      });
    });
    for_chunks(chunk_bytes, rounds, [&](std::uint64_t number, std::uint64_t offset, std::uint64_t bytes) {
      await(emptied, number < 2 ? 0 : number - 1);
      bare_copy(*out_, buffer(number, chunk_bytes), buffers_->source() + offset, bytes);
      filled.store(number + 1, std::memory_order_release);
    });
    deliver.join();
  }
  void by_streams(std::size_t chunk_bytes, Rounds rounds) {
    for_chunks(chunk_bytes, rounds, [&](std::uint64_t number, std::uint64_t offset, std::uint64_t bytes) {
      out_->wait_event(*emptied_[number % 2]);
      bare_copy(*out_, buffer(number, chunk_bytes), buffers_->source() + offset, bytes);
      out_->record(*filled_[number % 2]);
      in_->wait_event(*filled_[number % 2]);
      bare_copy(*in_, there() + offset, buffer(number, chunk_bytes), bytes);
      in_->record(*emptied_[number % 2]);
    });
    bench_.world().synchronize(*in_);
  }

  Bench& bench_;
  const std::shared_ptr<Staging> staging_;
  HybridTransfers& hybrid_;
  std::shared_ptr<MessageBuffers> buffers_;
  SymmetricArray<std::uint64_t> arrived_;
  std::uint64_t sent_ = 0, heard_ = 0;
  std::unique_ptr<Stream> out_, in_;
  std::unique_ptr<Event> filled_[2], emptied_[2];
};

/// One choice, as records show it.
struct Choice {
  const char* name;
  HybridOptions options;
};

/// The choices: automatic, direct, and staged by each chunk size that divides the message.
std::vector<Choice> choices_for(std::uint64_t bytes) {
  std::vector<Choice> all = {{"automatic", {}}, {"direct", {.threshold_bytes = SIZE_MAX}}};
  for (const std::size_t chunk : chunk_sizes)
    for (const std::uint32_t chunks : chunk_counts)
      if (chunk < bytes || (chunk == chunk_sizes[0] && chunks == chunk_counts[0]))
        all.push_back({"staged", {.threshold_bytes = 1, .chunk_bytes = chunk, .chunks = chunks}});
  return all;
}

Settings settings_of(const Bench& bench, const Choice& choice, Memories memories) {
  Settings settings = {{"choice", choice.name}};
  if (choice.options.chunks != 0)
    settings.insert(settings.end(), {{"chunk_bytes", std::uint64_t{choice.options.chunk_bytes}},
                                     {"chunks", std::uint64_t{choice.options.chunks}}});
  const auto name = [](Heap heap) { return heap == Heap::pinned ? "host" : "gpu"; };
  if (bench.world().device().is_gpu())
    settings.insert(settings.end(), {{"source", name(memories.source)}, {"destination", name(memories.destination)}});
  return settings;
}

/// Adds the bare peer of a staged choice.
void add_bare(const std::shared_ptr<Puts>& puts, Bench& bench, Measurement& staged, std::size_t chunk_bytes,
              std::vector<Measurement>& all) {
  Measurement bare = message_measurement(bench, puts->buffers(), Receivers::second, "bare/double_buffered",
                                         [=](Rounds rounds) { return puts->bare_flood(chunk_bytes, rounds); });
  bare.peer_of = method;
  bare.stores_to_peer = true;
  bare.settings = {{"chunk_bytes", std::uint64_t{chunk_bytes}}, {"chunks", std::uint64_t{2}}};
  staged.baseline = all.size();
  all.push_back(std::move(bare));
}

template <Receivers receivers>
std::vector<Measurement> prepare(Bench& bench, std::uint64_t bytes) {
  std::vector<Measurement> all;
  const auto staging = std::make_shared<Staging>(bench.world());
  for (const Memories memories : all_memories(bench)) {
    const bool is_in_gpus = memories.source == Heap::symmetric && memories.destination == Heap::symmetric;
    if (bench.world().device().is_gpu() && bytes > most_pinned && !is_in_gpus) continue;
    const auto puts = std::make_shared<Puts>(bench, bytes, memories, staging);
    for (const Choice& choice : choices_for(bytes)) {
      Measurement measurement = message_measurement(bench, puts->buffers(), receivers, method, [=](Rounds rounds) {
        return receivers == Receivers::both ? puts->ping_pong(choice.options, rounds)
                                            : puts->flood(choice.options, rounds);
      });
      measurement.settings = settings_of(bench, choice, memories);
      measurement.most_iterations = 200;
      if (receivers == Receivers::second && choice.options.chunks == 2)
        add_bare(puts, bench, measurement, choice.options.chunk_bytes, all);
      all.push_back(std::move(measurement));
    }
  }
  return all;
}

const ListedCases latency_cases(Command::latency, {{"message", method, true, prepare<Receivers::both>}});
const ListedCases bandwidth_cases(Command::bandwidth, {{"put", method, true, prepare<Receivers::second>}});

}  // namespace

}  // namespace beeline::bench::hybrid_cases
