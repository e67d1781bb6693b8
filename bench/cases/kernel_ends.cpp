// SPDX-License-Identifier: Apache-2.0
/// @file
/// The boundaries of kernels: how soon a kernel starts after others that are queued, and when a word sent by a kernel
/// arrives, relative to the kernel's end. Source: seed 003, launch latencies, and a dummy kernel that puts and ends
/// while the target polls.

#include <algorithm>

#include "beeline/control/post.hpp"
#include "beeline/host/command_queues.hpp"
#include "beeline/host/launch.hpp"
#include "beeline/host/stream_operations.hpp"
#include "cases/cases.hpp"
#include "peers/bare_words.hpp"

namespace beeline::bench::kernel_ends_cases {

namespace {

/// Blocks the stream until the host releases it.
struct Hold {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* go, std::uint64_t round,
                                      std::uint64_t* stamp) const {
    if (grid.block().thread_rank() != 0) return;
    static_cast<void>(bare_poll<std::memory_order_acquire>(grid.block(), ctx, go, round));
    *stamp = machine::clock_ns();
  }
};

struct Stamp {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, std::uint64_t* stamp) const {
    if (grid.block().thread_rank() == 0) *stamp = machine::clock_ns();
  }
};

constexpr unsigned threads = 32;

/// Kernels that all wait in one stream.
class QueuedKernels {
 public:
  QueuedKernels(Bench& bench, std::uint32_t count)
      : bench_(bench), count_(count), stamps_(bench.world(), count + 1), go_(bench.world(), 1, Heap::pinned) {}

  /// Collective. Mean nanoseconds from the start of one kernel to the start of the next; the first follows a running
  /// kernel.
  double time() {
    World& world = bench_.world();
    world.barrier();
    if (!bench_.leads()) return 0;
    ++round_;
    launch(world, {.threads = threads, .waits = true}, Hold{}, go_.data(), round_, stamps_.data());
    for (std::uint32_t i = 1; i <= count_; ++i) launch(world, {.threads = threads}, Stamp{}, stamps_.data() + i);
    BareWord(*go_.data()).store(round_, std::memory_order_release);
    world.synchronize();
    std::vector<std::uint64_t> stamps(count_ + 1);
    world.copy(stamps.data(), stamps_.data(), stamps.size() * sizeof stamps[0]);
    require(std::is_sorted(stamps.begin(), stamps.end()), Status::internal, "kernels of a stream did not run in order");
    return static_cast<double>(stamps.back() - stamps.front()) / count_;
  }

 private:
  Bench& bench_;
  std::uint32_t count_;
  SymmetricArray<std::uint64_t> stamps_, go_;
  std::uint64_t round_ = 0;
};

std::vector<Measurement> prepare_starts(Bench& bench, std::uint64_t) {
  std::vector<Measurement> all;
  for (const std::uint32_t count : {1u, 4u, 16u, 64u, 256u}) {
    const auto kernels = std::make_shared<QueuedKernels>(bench, count);
    Measurement measurement{.operation = "kernel_start", .method = "stream/start"};
    measurement.most_iterations = 1;
    measurement.settings = {{"queued", std::uint64_t{count}}};
    measurement.time = [=](Rounds rounds) { return time_batches(rounds, [&] { return kernels->time(); }); };
    all.push_back(std::move(measurement));
  }
  return all;
}

/// Polls a word of this rank, and records when each value arrived.
struct Poll {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, const std::uint64_t* word, std::uint64_t first,
                                      std::uint64_t* stamps, std::uint32_t count) const {
    if (grid.block().thread_rank() != 0) return;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (wait(Thread{}, ctx, word, Compare::greater_equal, first + i) != Status::ok) return;
      stamps[i] = machine::clock_ns();
    }
  }
};

enum class Sender : std::uint32_t { nobody, kernel, engine };

/// Works for a while, sends a word, and ends.
struct DummyKernel {
  static constexpr std::uint64_t work_ns = 20'000;
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Sender sender, std::uint64_t* word,
                                      std::uint64_t value, CommandQueuesView channel, std::uint64_t* stamp) const {
    if (grid.block().thread_rank() != 0) return;
    for (const std::uint64_t end = machine::clock_ns() + work_ns; machine::clock_ns() < end;)
      machine::back_off(0, ctx.polling);
    if (sender == Sender::kernel) static_cast<void>(signal(Thread{}, ctx, word, value, ctx.rank));
    if (sender == Sender::engine)
      static_cast<void>(post_signal(Thread{}, ctx, word, value, ctx.rank, channel.queue(0)));
    *stamp = machine::clock_ns();
  }
};

/// A method of sending at a kernel's end. The word goes to the rank itself, because both kernels then read the same
/// clock.
struct Way {
  const char* method;
  Sender sender;
  Heap heap;
  void (*after)(World& world, Stream& stream, std::uint64_t* word, std::uint64_t value);  ///< nullptr: nothing
};

void by_stream(World& world, Stream& stream, std::uint64_t* word, std::uint64_t value) {
  signal_on_stream(world, world.rank(), {.signal = word, .value = value, .stream = &stream});
}
void by_kernel_on_stream(World& world, Stream& stream, std::uint64_t* word, std::uint64_t value) {
  put_signal_on_stream(world, nullptr, nullptr, 0, world.rank(), {.signal = word, .value = value, .stream = &stream});
}
void by_host(World& world, Stream& stream, std::uint64_t* word, std::uint64_t value) {
  world.synchronize(stream);
  static_cast<void>(signal(Thread{}, world.host_context(), word, value, static_cast<std::uint32_t>(world.rank())));
}

constexpr Way ways[] = {{"device/peer/signal", Sender::kernel, Heap::symmetric, nullptr},
                        {"proxy/copy_engine/signal", Sender::engine, Heap::symmetric, nullptr},
                        {"proxy/copy_engine/signal", Sender::engine, Heap::pinned, nullptr},
                        {"stream/copy_engine/signal", Sender::nobody, Heap::symmetric, by_stream},
                        {"stream/peer/signal", Sender::nobody, Heap::symmetric, by_kernel_on_stream},
                        {"host/copy_engine/signal", Sender::nobody, Heap::pinned, by_host}};

class Arrivals {
 public:
  Arrivals(Bench& bench, const Way& way)
      : bench_(bench), way_(way), word_(bench.world(), 1, way.heap), ends_(bench.world(), rounds),
        arrivals_(bench.world(), rounds), queues_(bench.world()), polling_(bench.world().make_stream()),
        working_(bench.world().make_stream()) {}

  /// Collective. Nanoseconds from the kernel's last instruction to the word's arrival: the median of some rounds.
  double time() {
    World& world = bench_.world();
    world.barrier();
    if (!bench_.leads()) return 0;
    launch(world, {.threads = threads, .waits = true, .stream = polling_.get()}, Poll{}, word_.data(), next_,
           arrivals_.data(), rounds);
    for (std::uint32_t i = 0; i < rounds; ++i, ++next_) {
      launch(world, {.threads = threads, .stream = working_.get()}, DummyKernel{}, way_.sender, word_.data(), next_,
             queues_.channel(), ends_.data() + i);
      if (way_.after != nullptr) way_.after(world, *working_, word_.data(), next_);
      world.synchronize(*working_);
    }
    world.synchronize(*polling_);
    std::vector<std::uint64_t> ends(rounds), arrivals(rounds);
    world.copy(ends.data(), ends_.data(), rounds * sizeof ends[0]);
    world.copy(arrivals.data(), arrivals_.data(), rounds * sizeof arrivals[0]);
    std::vector<double> after;
    for (std::uint32_t i = 0; i < rounds; ++i)
      after.push_back(static_cast<double>(arrivals[i]) - static_cast<double>(ends[i]));
    std::nth_element(after.begin(), after.begin() + rounds / 2, after.end());
    return after[rounds / 2];
  }

 private:
  static constexpr std::uint32_t rounds = 21;
  Bench& bench_;
  const Way& way_;
  SymmetricArray<std::uint64_t> word_, ends_, arrivals_;
  CommandQueues queues_;
  std::unique_ptr<Stream> polling_, working_;
  std::uint64_t next_ = 1;
};

Case arrivals_of(const Way& way) {
  const auto prepare = [&way](Bench& bench, std::uint64_t) {
    const auto arrivals = std::make_shared<Arrivals>(bench, way);
    Measurement measurement{.operation = "arrival", .method = way.method, .bytes = sizeof(std::uint64_t)};
    measurement.most_iterations = 1;
    measurement.settings = {{"memory", way.heap == Heap::pinned ? "pinned" : "device"}};
    measurement.time = [=](Rounds rounds) { return time_batches(rounds, [&] { return arrivals->time(); }); };
    return std::vector{std::move(measurement)};
  };
  return {"arrival", way.method, false, prepare};
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const Way& way : ways) all.push_back(arrivals_of(way));
  all.push_back({"kernel_start", "stream/start", false, prepare_starts});
  return all;
}

const ListedCases cases(Command::methods, all_cases());

}  // namespace

}  // namespace beeline::bench::kernel_ends_cases
