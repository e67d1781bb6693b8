// SPDX-License-Identifier: Apache-2.0
/// @file
/// Waits of CPU threads. `synchronize`: a short kernel, and the wait for it by each kind of synchronization, beside
/// CUDA's own waits (seed 000, table 4.1). `thread_wait`: the time that each message makes a thread wait for the lock
/// or the buffers of other threads, by the number of threads that send at the same time (seed 001, figure 8).

#include <thread>

#include "beeline/host/hybrid_transfers.hpp"
#include "beeline/host/launch.hpp"
#include "beeline/host/staged_channel.hpp"
#include "cases/cases.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_host.hpp"
#include "peers/bare_synchronize.hpp"

namespace beeline::bench::host_waits_cases {

namespace {

// As in the table.
constexpr unsigned blocks = 64, threads_of_block = 128;

struct ReadClock {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, std::uint64_t* stamps) const {
    if (grid.block().thread_rank() == 0) stamps[grid.block_rank()] = machine::clock_ns();
  }
};

class Launches {
 public:
  /// Collective.
  explicit Launches(Bench& bench)
      : bench_(bench), stamps_(bench.world(), blocks), stream_(bench.world().make_stream()),
        event_(stream_->make_event()) {}

  /// Times launches, each with a wait for its end. Only rank 0 works.
  template <class Await>
  std::vector<double> time(Rounds rounds, const Await& await) {
    return time_on_host(bench_, rounds, [&] {
      if (!bench_.leads()) return;
      launch(bench_.world(), {.blocks = blocks, .threads = threads_of_block, .stream = stream_.get()}, ReadClock{},
             stamps_.data());
      await();
    });
  }
  void by_stream() { bench_.world().synchronize(*stream_); }
  void by_event() {
    stream_->record(*event_);
    bench_.world().synchronize(*event_);
  }
  void bare(BareWait wait) { bare_synchronize(*stream_, wait); }

 private:
  Bench& bench_;
  SymmetricArray<std::uint64_t> stamps_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> event_;
};

std::vector<Measurement> prepare_synchronize(Bench& bench, std::uint64_t) {
  const auto launches = std::make_shared<Launches>(bench);
  std::vector<Measurement> all;
  const auto add = [&](const char* method, const auto& await) {
    all.push_back({.operation = "synchronize", .method = method, .most_iterations = 200});
    all.back().settings = {{"blocks", std::uint64_t{blocks}}, {"threads_per_block", std::uint64_t{threads_of_block}}};
    all.back().time = [=](Rounds rounds) { return launches->time(rounds, await); };
  };
  add("blocking/stream", [=] { launches->by_stream(); });
  add("blocking/event", [=] { launches->by_event(); });
  if (!bench.world().device().is_gpu()) return all;
  add("bare/device_synchronize", [=] { launches->bare(BareWait::device); });
  add("bare/stream_synchronize", [=] { launches->bare(BareWait::stream); });
  add("bare/event_synchronize", [=] { launches->bare(BareWait::event); });
  add("bare/blocking_event", [=] { launches->bare(BareWait::blocking_event); });
  return all;
}

/// Several threads of each rank, each with messages of its own.
class Senders {
 public:
  /// Collective.
  Senders(Bench& bench, std::uint64_t bytes, unsigned threads)
      : bench_(bench), threads_(threads), buffers_(bench, bytes * threads),
        hybrid_(bench.world(), {.threshold_bytes = 1, .chunk_bytes = chunk_bytes, .chunks = 2}) {
    for (unsigned number = 0; number < threads; ++number)
      channels_.push_back(std::make_unique<StagedChannel>(bench.world(), chunk_bytes, 2));
  }

  /// The time that rank 0's threads wait for messages through one shared object, or through a staged channel for each
  /// thread, in nanoseconds of one thread.
  std::vector<double> waits(Rounds rounds, bool by_hybrid) {
    bench_.world().barrier();
    if (!bench_.paired()) return {};
    return time_batches(rounds, [&] {
      const std::uint64_t before = waited_ns(by_hybrid);
      std::vector<std::jthread> all;
      for (unsigned number = 0; number < threads_; ++number)
        all.emplace_back(
            [=, this] { by_hybrid ? put(number, rounds.iterations) : exchange(number, rounds.iterations); });
      all.clear();  // joins
      return static_cast<double>(waited_ns(by_hybrid) - before) / threads_;
    });
  }

 private:
  static constexpr std::size_t chunk_bytes = std::size_t{512} << 10;

  [[nodiscard]] int peer() const { return static_cast<int>(bench_.peer()); }
  [[nodiscard]] std::uint64_t bytes() const { return buffers_.bytes() / threads_; }
  [[nodiscard]] std::uint64_t waited_ns(bool by_hybrid) const {
    if (by_hybrid) return hybrid_.lock_wait_ns();
    std::uint64_t sum = 0;
    for (const auto& channel : channels_) sum += channel->waited_ns();
    return sum;
  }
  void put(unsigned number, std::uint32_t messages) {
    if (!bench_.leads()) return;
    for (std::uint32_t i = 0; i < messages; ++i)
      hybrid_.put(buffers_.destination() + number * bytes(), buffers_.source() + number * bytes(), bytes(), peer());
  }
  void exchange(unsigned number, std::uint32_t messages) {
    for (std::uint32_t i = 0; i < messages; ++i)
      if (bench_.leads())
        channels_[number]->send(buffers_.source() + number * bytes(), bytes(), peer());
      else
        channels_[number]->receive(buffers_.destination() + number * bytes(), bytes(), peer());
  }

  Bench& bench_;
  const unsigned threads_;
  MessageBuffers buffers_;
  HybridTransfers hybrid_;
  std::vector<std::unique_ptr<StagedChannel>> channels_;
};

template <bool by_hybrid>
std::vector<Measurement> prepare_waits(Bench& bench, std::uint64_t bytes) {
  std::vector<Measurement> all;
  for (const unsigned threads : {1u, 2u, 4u}) {
    const auto senders = std::make_shared<Senders>(bench, bytes, threads);
    all.push_back({.operation = "thread_wait",
                   .method = by_hybrid ? "host/hybrid/pipelined" : "host/staged/pipelined",
                   .bytes = bytes,
                   .most_iterations = 20});
    all.back().settings = {{"threads", std::uint64_t{threads}}, {"waits_for", by_hybrid ? "lock" : "buffers"}};
    all.back().time = [=](Rounds rounds) { return senders->waits(rounds, by_hybrid); };
  }
  return all;
}

constexpr SizeRange sizes{256 << 10, 16 << 20};
const ListedCases cases(Command::methods,
                        {{"synchronize", "blocking/stream", false, prepare_synchronize},
                         {"thread_wait", "host/hybrid/pipelined", true, prepare_waits<true>, sizes},
                         {"thread_wait", "host/staged/pipelined", true, prepare_waits<false>, sizes}});

}  // namespace

}  // namespace beeline::bench::host_waits_cases
