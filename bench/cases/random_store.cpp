// SPDX-License-Identifier: Apache-2.0
/// @file
/// Every thread of every rank stores to random words of all ranks' tables: the extra cost of an update is that of the
/// atomic.

#include "cases/cases.hpp"
#include "cases/random_table.hpp"
#include "peers/bare_words.hpp"

namespace beeline::bench::random_store_cases {

namespace {

struct LibraryStore {
  static BEELINE_HOST_DEVICE void apply(const Context& ctx, const Updates& updates, const RandomWord& word) {
    put_value(ctx, updates.table + word.index, word.stored(updates), word.rank);
  }
};

struct BareStoreWord {
  static BEELINE_HOST_DEVICE void apply(const Context&, const Updates& updates, const RandomWord& word) {
    bare_store_word(word.bare(updates), word.stored(updates));
  }
};

struct Wrong {
  static BEELINE_HOST_DEVICE std::uint64_t of(const Context& ctx, const Updates& updates, const RandomWord& word) {
    const detail::SystemAtomic<std::uint64_t> found(*ctx.at(updates.table + word.index, word.rank));
    return found.load(std::memory_order_relaxed) == word.stored(updates) ? 0 : 1;
  }
};

/// Whether every word that this rank stored to holds the stored value: all ranks store the same value to a word.
template <class Update>
bool verify(RandomTable& table, TimedGrid& timed, const GridShape& shape, std::uint64_t seed) {
  constexpr std::uint32_t iterations = 16;
  const Updates updates = table.next(seed, iterations);
  static_cast<void>(table.run<Update>(timed, shape, updates));
  table.bench().world().barrier();
  const std::uint64_t wrong = table.sum(shape, CountUpdates<Wrong>{}, updates);
  table.bench().world().barrier();  // the next measurement must not store before all ranks have checked
  return wrong == 0;
}

std::vector<Measurement> prepare(Bench& bench, std::uint64_t) {
  return update_measurements<LibraryStore, BareStoreWord>(
      bench, "random_store", "bare/store",
      []<class Update>(RandomTable& table, TimedGrid& timed, const GridShape& shape, std::uint64_t seed) {
        return verify<Update>(table, timed, shape, seed);
      });
}

const ListedCases rate_cases(Command::rate, {{"random_store", "device/peer/signal", false, prepare}});

}  // namespace

}  // namespace beeline::bench::random_store_cases
