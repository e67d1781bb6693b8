// SPDX-License-Identifier: Apache-2.0
/// @file
/// Every thread of every rank adds random numbers to random words of all ranks' tables.

#include "beeline/device/atomic.hpp"
#include "cases/cases.hpp"
#include "cases/random_table.hpp"

namespace beeline::bench::random_update_cases {

namespace {

struct LibraryAdd {
  static BEELINE_HOST_DEVICE void apply(const Context& ctx, const Updates& updates, const RandomWord& word) {
    atomic_add(ctx, updates.table + word.index, word.random, word.rank);
  }
};

struct BareAdd {
  static BEELINE_HOST_DEVICE void apply(const Context&, const Updates& updates, const RandomWord& word) {
    machine::reduce_add(word.bare(updates), word.random);
  }
};

struct Added {
  static BEELINE_HOST_DEVICE std::uint64_t of(const Context&, const Updates&, const RandomWord& word) {
    return word.random;
  }
};

struct SumOfTable {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, const std::uint64_t* words, std::uint64_t count,
                                      std::uint64_t* total) const {
    std::uint64_t sum = 0;
    for (std::uint64_t i = grid.thread_rank(); i < count; i += grid.size()) sum += words[i];
    add_to(total, sum);
  }
};

/// Whether the sum of all words has grown by the sum of the additions.
template <class Update>
bool verify(RandomTable& table, TimedGrid& timed, const GridShape& shape, std::uint64_t seed) {
  constexpr std::uint32_t iterations = 16;
  const auto sum_of_table = [&] {
    table.bench().world().barrier();
    return table.sum(shape, SumOfTable{}, static_cast<const std::uint64_t*>(table.words()), table.count());
  };
  const std::uint64_t before = sum_of_table();
  const Updates updates = table.next(seed, iterations);
  static_cast<void>(table.run<Update>(timed, shape, updates));
  const std::uint64_t grown = sum_of_table() - before, added = table.sum(shape, CountUpdates<Added>{}, updates);
  std::uint64_t missing = 0;
  for (std::uint64_t each : table.bench().from_all(added - grown)) missing += each;
  return missing == 0;
}

std::vector<Measurement> prepare(Bench& bench, std::uint64_t) {
  return update_measurements<LibraryAdd, BareAdd>(
      bench, "random_update", "bare/atomic",
      []<class Update>(RandomTable& table, TimedGrid& timed, const GridShape& shape, std::uint64_t seed) {
        return verify<Update>(table, timed, shape, seed);
      });
}

const ListedCases rate_cases(Command::rate, {{"random_update", "device/peer/signal", false, prepare}});

}  // namespace

}  // namespace beeline::bench::random_update_cases
