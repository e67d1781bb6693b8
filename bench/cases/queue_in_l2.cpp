// SPDX-License-Identifier: Apache-2.0
/// @file
/// Queues of a device engine in the second-level cache, while other blocks stream memory through it: round trips with
/// and without a persisting window over the queues. Source: seed 003, 4.3 (locked lines for the service's data).

#include <array>

#include "cases/cases.hpp"
#include "cases/posted_words.hpp"
#include "peers/l2_window.hpp"

namespace beeline::bench::queue_in_l2_cases {

namespace {

constexpr std::uint64_t streamed_bytes = std::uint64_t{256} << 20;  ///< several times the cache
constexpr unsigned streaming_threads = 1024;

/// Reads the whole array repeatedly until `stop`.
struct StreamMemory {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, const machine::Word16* from, std::uint64_t count,
                                      const std::uint64_t* stop, std::uint64_t* sum) const {
    std::uint64_t seen = 0;
    while (BareWord(const_cast<std::uint64_t&>(*stop)).load(std::memory_order_relaxed) == 0)
      for (std::uint64_t i = grid.thread_rank(); i < count; i += grid.size()) seen += from[i].low ^ from[i].high;
    if (seen == 1) *sum = seen;  // keeps the compiler from removing the loads
  }
};

class StreamedQueue {
 public:
  explicit StreamedQueue(Bench& bench)
      : bench_(bench),
        commands_(std::make_shared<Commands>(bench, Shape{.heap = Heap::symmetric, .engine = EngineKind::device})),
        streamed_(bench.world(), streamed_bytes / sizeof(machine::Word16)), sum_(bench.world(), 1),
        posting_(bench.world().make_stream()), streaming_(bench.world().make_stream()) {}

  [[nodiscard]] const std::shared_ptr<Commands>& commands() const { return commands_; }

  /// Collective. Nanoseconds of round trips, ascending.
  std::vector<std::uint64_t> probe(bool streams, bool has_window) {
    const CommandQueuesView channel = commands_->queues().channel();
    const std::size_t queue_bytes = has_window ? channel.queues * sizeof(CommandRing) : 0;
    set_l2_window(*posting_, channel.rings, queue_bytes);
    Beside beside{.stream = posting_.get()};
    if (streams) beside.begin = [this](const std::uint64_t* stop) { begin(stop); };
    std::vector<std::uint64_t> found = commands_->probe(0, 0, beside).whole;
    bench_.world().synchronize(*streaming_);
    return found;
  }

 private:
  void begin(const std::uint64_t* stop) {
    const auto blocks = static_cast<unsigned>(bench_.world().device().multiprocessors);
    launch(bench_.world(), {.blocks = blocks, .threads = streaming_threads, .stream = streaming_.get()}, StreamMemory{},
           streamed_.data(), streamed_bytes / sizeof(machine::Word16), stop, sum_.data());
  }

  Bench& bench_;
  std::shared_ptr<Commands> commands_;
  SymmetricArray<machine::Word16> streamed_;
  SymmetricArray<std::uint64_t> sum_;
  std::unique_ptr<Stream> posting_, streaming_;
};

std::vector<Measurement> prepare(Bench& bench, std::uint64_t) {
  bench.require_alike();
  if (!bench.world().device().is_gpu()) return {};  // a CPU's caches have no such window
  const auto queue = std::make_shared<StreamedQueue>(bench);
  std::vector<Measurement> all;
  for (const bool streams : {false, true})
    for (const bool has_window : {false, true})
      for (const auto& [name, quantile] : {std::pair{"command_p50", 0.5}, std::pair{"command_p99", 0.99}}) {
        all.push_back(measurement_of(queue->commands(), name, [=, quantile = quantile](Rounds rounds) {
          return time_batches(rounds, [&] {
            const std::vector<std::uint64_t> found = queue->probe(streams, has_window);
            return found.empty() ? 0.0
                                 : static_cast<double>(found[static_cast<std::size_t>(quantile * (found.size() - 1))]);
          });
        }));
        all.back().most_iterations = 1;
        all.back().settings.emplace_back("load", streams ? "streaming" : "none");
        all.back().settings.emplace_back("l2_window", has_window ? "persisting" : "none");
      }
  return all;
}

const ListedCases cases(Command::methods, {{"command_l2", method_of(EngineKind::device), false, prepare}});

}  // namespace

}  // namespace beeline::bench::queue_in_l2_cases
