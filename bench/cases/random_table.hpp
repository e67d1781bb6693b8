// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tables of 8-byte words on all ranks, and kernels that change random words. Source: RandomAccess of the HPC
/// Challenge; seed 000 section 6.9.

#include <memory>
#include <utility>

#include "beeline/device/barrier.hpp"
#include "beeline/device/put_get.hpp"
#include "harness/device_count.hpp"
#include "harness/random.hpp"
#include "harness/timed_grid.hpp"

namespace beeline::bench {

/// The updates of one launch on a rank. Objects with equal seeds make equal updates.
struct Updates {
  BlockTimes* times;
  std::uint64_t* table;  ///< symmetric
  std::uint64_t* first;  ///< rank 0's table; the tables of other ranks follow at distances of `stride` words
  std::int64_t stride;
  std::uint64_t words;    ///< of a table, a power of two
  std::uint64_t seed;     ///< of this rank's random words
  std::uint64_t pattern;  ///< the same on every rank
  std::uint64_t each;     ///< updates of a thread
  std::uint32_t ranks;
};

/// A word of some rank's table, and the random number that chose it.
struct RandomWord {
  std::uint64_t random, index;
  std::uint32_t rank;
  /// Address of the word, computed without the library.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t* bare(const Updates& updates) const {
    return updates.first + static_cast<std::int64_t>(rank) * updates.stride + index;
  }
  /// The value that every thread stores to this word.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t stored(const Updates& updates) const {
    return updates.pattern ^ (rank * updates.words + index);
  }
};

/// Calls `use(word)` for each word that this thread of the grid changes.
template <class Grid, class Use>
BEELINE_HOST_DEVICE void for_each_word(const Grid& grid, const Updates& updates, Use use) {
  const std::uint64_t threads = grid.size(), last = threads * updates.each;
  for (std::uint64_t i = grid.thread_rank(); i < last; i += threads) {
    const std::uint64_t random = random_word(updates.seed, i);
    use(RandomWord{random, random & (updates.words - 1),
                   static_cast<std::uint32_t>((random >> 32) * updates.ranks >> 32)});
  }
}

/// The timed kernel. All ranks start together, since each rank is a target of all.
template <class Update>
struct RandomUpdates {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Updates updates) const {
    const auto& block = grid.block();
    if (grid.block_rank() == 0 && barrier(block, ctx, Order::relaxed) != Status::ok) return;
    if (grid.sync(ctx) != Status::ok) return;
    const std::uint64_t start = machine::clock_ns();
    for_each_word(grid, updates, [&](const RandomWord& word) { Update::apply(ctx, updates, word); });
    fence();
    block.sync();
    if (block.thread_rank() == 0) updates.times[grid.block_rank()] = {start, machine::clock_ns()};
  }
};

/// Adds up the values of `Count` at each word that a launch with the same updates has changed.
template <class Count>
struct CountUpdates {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Updates updates, std::uint64_t* total) const {
    std::uint64_t sum = 0;
    for_each_word(grid, updates, [&](const RandomWord& word) { sum += Count::of(ctx, updates, word); });
    add_to(total, sum);
  }
};

/// The tables of one case.
class RandomTable {
 public:
  static constexpr std::uint64_t updates_per_iteration = 16;  ///< of a thread

  /// Collective. Throws unavailable in worlds of GPU and host ranks.
  explicit RandomTable(Bench& bench)
      : bench_(bench),
        table_(bench.world(), table_bytes(bench.options(), bench.world().device().is_gpu()) / sizeof(std::uint64_t)),
        total_(bench) {
    const World& world = bench.world();
    first_ = table_.at(0);
    stride_ = world.size() > 1 ? table_.at(1) - first_ : 0;
    for (int rank = 0; rank < world.size(); ++rank)
      require(table_.at(rank) == first_ + rank * stride_, Status::internal, "the ranks' tables are not evenly spaced");
  }

  [[nodiscard]] Bench& bench() const { return bench_; }
  [[nodiscard]] std::uint64_t* words() const { return table_.data(); }
  [[nodiscard]] std::uint64_t count() const { return table_.count(); }

  /// Collective. The next launch's updates, for `iterations`; each call returns other updates, even for the same seed.
  [[nodiscard]] Updates next(std::uint64_t seed, std::uint32_t iterations) {
    const std::uint64_t pattern = random_word(seed, launches_++);
    const auto ranks = static_cast<std::uint32_t>(bench_.world().size());
    const std::uint64_t mine = random_word(pattern, static_cast<std::uint64_t>(bench_.world().rank()));
    return {nullptr, table_.data(), first_, stride_, table_.count(), mine, pattern, iterations * updates_per_iteration,
            ranks};
  }

  /// Collective. Returns the nanoseconds of the slowest rank.
  template <class Update>
  double run(TimedGrid& timed, const GridShape& shape, Updates updates) {
    updates.times = timed.times();
    const auto mine = static_cast<std::uint64_t>(timed.run(shape, true, RandomUpdates<Update>{}, updates));
    const std::vector<std::uint64_t> all = bench_.from_all(mine);
    return static_cast<double>(*std::max_element(all.begin(), all.end()));
  }

  /// Runs `kernel(..., args..., total)` on this rank, and returns the total.
  template <class Kernel, class... Args>
  std::uint64_t sum(const GridShape& shape, Kernel kernel, Args... args) {
    return total_.after([&](std::uint64_t* total) {
      launch(bench_.world(), {.blocks = shape.blocks, .threads = shape.threads}, kernel, args..., total);
    });
  }

 private:
  Bench& bench_;
  SymmetricArray<std::uint64_t> table_;
  DeviceCount total_;
  std::uint64_t* first_ = nullptr;
  std::int64_t stride_ = 0;
  std::uint64_t launches_ = 0;
};

/// Grids that can run either update on every rank: one block per multiprocessor, and as many blocks as fit; one team on
/// host ranks.
template <class Library, class Bare>
[[nodiscard]] std::vector<GridShape> update_shapes(const Bench& bench) {
  const Device& device = bench.world().device();
  if (!device.is_gpu()) return {{1, static_cast<unsigned>(bench.world().config().host_threads)}};
  constexpr unsigned threads = 512;
  const unsigned most = std::min(resident_everywhere<RandomUpdates<Library>, Updates>(bench, threads),
                                 resident_everywhere<RandomUpdates<Bare>, Updates>(bench, threads));
  require(most > 0, Status::no_resource, "no block of 512 threads could be resident on every rank");
  std::vector<GridShape> shapes;
  if (const auto one_each = static_cast<unsigned>(bench.world().device(0).multiprocessors); one_each < most)
    shapes.push_back({one_each, threads});
  shapes.push_back({most, threads});
  return shapes;
}

/// A measurement of `Update` on all ranks; `verify` is the check of the case.
template <class Update>
[[nodiscard]] Measurement update_measurement(std::shared_ptr<RandomTable> table, std::shared_ptr<TimedGrid> timed,
                                             const GridShape& shape, std::string operation, std::string method) {
  const World& world = table->bench().world();
  Measurement measurement{.operation = std::move(operation), .method = std::move(method)};
  measurement.bytes = sizeof(std::uint64_t);
  measurement.unit = Unit::giga_updates_per_second;
  measurement.most_iterations = 1'000'000;
  measurement.operations_per_iteration =
      static_cast<double>(RandomTable::updates_per_iteration) * shape.blocks * shape.threads * world.size();
  measurement.settings = shape.settings(world.device().is_gpu());
  measurement.settings.emplace_back("table_bytes", table->count() * sizeof(std::uint64_t));
  measurement.time = [=](Rounds rounds) {
    return time_batches(rounds, [&] { return table->run<Update>(*timed, shape, table->next(0, rounds.iterations)); });
  };
  return measurement;
}

/// For each shape, a measurement of `Library` named `operation`, and one of its bare peer `Bare`.
///   verify  whether the updates of `seed` by `Update` are found: `verify.operator()<Update>(table, timed, shape,
///           seed)`
template <class Library, class Bare, class Verify>
[[nodiscard]] std::vector<Measurement> update_measurements(Bench& bench, const char* operation, const char* bare_method,
                                                           Verify verify) {
  bench.require_alike();
  bench.require_loads_and_stores();  // for the loads and stores of the bare loop, and the barriers
  const std::vector<GridShape> shapes = update_shapes<Library, Bare>(bench);
  auto table = std::make_shared<RandomTable>(bench);
  auto timed = std::make_shared<TimedGrid>(bench, shapes.back().blocks);
  std::vector<Measurement> all;
  const auto add = [&]<class Update>(Update, const GridShape& shape, const char* method) {
    all.push_back(update_measurement<Update>(table, timed, shape, operation, method));
    all.back().verify = [=](std::uint64_t seed) {
      return verify.template operator()<Update>(*table, *timed, shape, seed);
    };
  };
  constexpr const char* method = "device/peer/signal";
  for (const GridShape& shape : shapes) {
    add(Bare{}, shape, bare_method);
    all.back().peer_of = method;
    add(Library{}, shape, method);
    all.back().baseline = all.size() - 2;
  }
  return all;
}

}  // namespace beeline::bench
