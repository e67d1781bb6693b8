// SPDX-License-Identifier: Apache-2.0
/// @file
/// The parts of a kernel that the CPU starts and waits for: the launch call, the time until the kernel starts, until it
/// has ended, and until the CPU knows of the end. Source: seed 003, the parts of its latencies: launch, kernel,
/// completion.

#include <algorithm>

#include "beeline/device/put_get.hpp"
#include "beeline/host/launch.hpp"
#include "cases/cases.hpp"
#include "peers/bare_words.hpp"

namespace beeline::bench::kernel_parts_cases {

namespace {

constexpr unsigned threads = 32;

/// Answers each word of the CPU with the time of the device's clock.
struct TellTime {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* asked, std::uint64_t* answered,
                                      std::uint64_t* stamps, std::uint64_t first, std::uint32_t count) const {
    if (grid.block().thread_rank() != 0) return;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!bare_poll<std::memory_order_acquire>(grid.block(), ctx, asked, first + i)) return;
      stamps[i] = machine::clock_ns();
      BareWord(*answered).store(first + i, std::memory_order_release);
    }
  }
};

/// Puts a word, as seed 003's kernels do.
struct PutOnce {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* word, std::uint64_t value,
                                      std::uint64_t* stamps) const {
    if (grid.block().thread_rank() != 0) return;
    stamps[0] = machine::clock_ns();
    static_cast<void>(signal(Thread{}, ctx, word, value, ctx.rank));
    stamps[1] = machine::clock_ns();
  }
};

struct Parts {
  double post = 0, start = 0, execution = 0, completion = 0;  ///< nanoseconds
};

class KernelParts {
 public:
  explicit KernelParts(Bench& bench)
      : bench_(bench), flags_(bench.world(), 2, Heap::pinned), word_(bench.world(), 1), stamps_(bench.world(), asks),
        stream_(bench.world().make_stream()) {}

  /// Collective. Medians of some launches.
  Parts time() {
    bench_.world().barrier();
    if (!bench_.leads()) return {};
    const double ahead = device_ahead();
    std::vector<double> post, start, execution, completion;
    for (std::uint32_t i = 0; i < launches; ++i) {
      const double called = now();
      launch(bench_.world(), {.threads = threads, .stream = stream_.get()}, PutOnce{}, word_.data(), ++value_,
             stamps_.data());
      const double returned = now();
      bench_.world().synchronize(*stream_);
      const double known = now();
      std::uint64_t stamps[2];
      bench_.world().copy(stamps, stamps_.data(), sizeof stamps);
      const double began = static_cast<double>(stamps[0]) - ahead, ended = static_cast<double>(stamps[1]) - ahead;
      post.push_back(returned - called);
      start.push_back(began - returned);
      execution.push_back(ended - began);
      completion.push_back(known - ended);
    }
    return {median_of(post), median_of(start), median_of(execution), median_of(completion)};
  }

 private:
  static constexpr std::uint32_t asks = 64, launches = 21;

  static double now() { return static_cast<double>(machine::clock_ns()); }
  static double median_of(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + launches / 2, values.end());
    return values[launches / 2];
  }
  /// How far the device's clock is ahead of the CPU's: taken from the fastest of some queries; the error is at most
  /// half its round trip.
  double device_ahead() {
    World& world = bench_.world();
    std::uint64_t *asked = &flags_.data()[0].value, *answered = &flags_.data()[1].value;
    launch(world, {.threads = threads, .waits = true, .stream = stream_.get()}, TellTime{}, asked, answered,
           stamps_.data(), asked_ + 1, asks);
    std::vector<double> middles, trips;
    for (std::uint32_t i = 0; i < asks; ++i) {
      const double before = now();
      BareWord(*asked).store(++asked_, std::memory_order_release);
      require(bare_poll<std::memory_order_acquire>(Thread{}, world.host_context(), answered, asked_), Status::deadline,
              "a kernel that tells the time does not answer");
      const double after = now();
      middles.push_back((before + after) / 2);
      trips.push_back(after - before);
    }
    world.synchronize(*stream_);
    std::vector<std::uint64_t> stamps(asks);
    world.copy(stamps.data(), stamps_.data(), asks * sizeof stamps[0]);
    const auto quickest = static_cast<std::size_t>(std::min_element(trips.begin() + 1, trips.end()) - trips.begin());
    return static_cast<double>(stamps[quickest]) - middles[quickest];
  }

  Bench& bench_;
  SymmetricArray<PaddedWord> flags_;
  SymmetricArray<std::uint64_t> word_, stamps_;
  std::unique_ptr<Stream> stream_;
  std::uint64_t asked_ = 0, value_ = 0;
};

std::vector<Measurement> prepare(Bench& bench, std::uint64_t) {
  const auto kernel = std::make_shared<KernelParts>(bench);
  std::vector<Measurement> all;
  for (const auto& [name, part] :
       {std::pair{"part_post", &Parts::post}, std::pair{"part_start", &Parts::start},
        std::pair{"part_execution", &Parts::execution}, std::pair{"part_completion", &Parts::completion}}) {
    Measurement measurement{.operation = name, .method = "blocking/kernel", .bytes = sizeof(std::uint64_t)};
    measurement.most_iterations = 1;
    measurement.time = [=, part = part](Rounds rounds) {
      return time_batches(rounds, [&] { return kernel->time().*part; });
    };
    all.push_back(std::move(measurement));
  }
  return all;
}

const ListedCases cases(Command::methods, {{"kernel_parts", "blocking/kernel", false, prepare}});

}  // namespace

}  // namespace beeline::bench::kernel_parts_cases
