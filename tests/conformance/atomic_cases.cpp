// SPDX-License-Identifier: Apache-2.0
// Atomics on a peer's memory: every operation, on 32- and 64-bit integers, by all threads of all ranks that have
// atomics there, at the same time.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "tests/conformance/group_kind.hpp"
#include "tests/conformance/rank_test.hpp"

namespace beeline_test::atomic_cases {

namespace {

using namespace beeline;

constexpr unsigned blocks = 2;
constexpr std::size_t most_threads = 1024;  // of a rank

template <class T>
struct AtomicWords {
  T sum, bits_set, bits_cleared, flipped, least, greatest, exchanged, swapped;
  T reduced_sum, reduced_or, reduced_and, reduced_xor;  ///< by the operations that return no old value
};

/// A different value for each thread of the world; some are negative.
template <class T>
BEELINE_HOST_DEVICE T contribution(std::uint32_t id) {
  const std::uint64_t mixed = (id + 1) * std::uint64_t{0x9e3779b97f4a7c15};
  return static_cast<T>(mixed >> (64 - 8 * sizeof(T)));
}

template <class T>
BEELINE_HOST_DEVICE T bit(std::uint32_t id) {
  return static_cast<T>(std::make_unsigned_t<T>{1} << (id % (8 * sizeof(T))));
}

template <class T>
struct AtomicArguments {
  AtomicWords<T>* words;
  T *tickets, *taken;  ///< [threads] old values that fetch_add and exchange returned
  std::uint32_t target, first_id;
};

template <class T>
struct AtomicKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report,
                                      AtomicArguments<T> a) const {
    if (!has_atomics(ctx, a.words, a.target)) return;
    const std::uint32_t thread = grid.thread_rank(), id = a.first_id + thread;
    const T mine = contribution<T>(id);
    AtomicWords<T>& words = *a.words;
    const auto check = [report](Status status) { BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status); };
    T before = 0;
    check(atomic_fetch_add(ctx, &words.sum, 1, a.target, a.tickets[thread]));
    check(atomic_fetch_or(ctx, &words.bits_set, bit<T>(id), a.target, before));
    check(atomic_fetch_and(ctx, &words.bits_cleared, static_cast<T>(~bit<T>(id)), a.target, before));
    check(atomic_fetch_xor(ctx, &words.flipped, mine, a.target, before));
    check(atomic_fetch_min(ctx, &words.least, mine, a.target, before));
    check(atomic_fetch_max(ctx, &words.greatest, mine, a.target, before));
    atomic_add(ctx, &words.reduced_sum, mine, a.target);
    atomic_or(ctx, &words.reduced_or, bit<T>(id), a.target);
    atomic_and(ctx, &words.reduced_and, static_cast<T>(~bit<T>(id)), a.target);
    atomic_xor(ctx, &words.reduced_xor, mine, a.target);
    check(atomic_exchange(ctx, &words.exchanged, mine, a.target, a.taken[thread]));
    for (T seen = 0;;) {
      const Status status = atomic_compare_swap(ctx, &words.swapped, seen, static_cast<T>(seen + 3), a.target, before);
      check(status);
      if (before == seen || status != Status::ok) break;
      seen = before;
    }
  }
  BEELINE_HOST_DEVICE static constexpr T start_of_least() { return std::is_signed_v<T> ? 1 : static_cast<T>(~T{0}); }
  BEELINE_HOST_DEVICE static constexpr T start_of_greatest() { return std::is_signed_v<T> ? -1 : 0; }
};

template <class T>
std::vector<T> gather_values(RankTest& test, const T* values, std::size_t count) {
  const std::vector<std::byte> mine = test.read(values, count * sizeof(T));
  std::vector<T> all;
  for (const auto& bytes : test.world().allgather({mine.data(), mine.size()})) {
    all.resize(all.size() + bytes.size() / sizeof(T));
    std::memcpy(all.data() + all.size() - bytes.size() / sizeof(T), bytes.data(), bytes.size());
  }
  return all;
}

template <class T>
void check_words(const AtomicWords<T>& words, std::uint32_t threads, const std::vector<T>& taken) {
  using Unsigned = std::make_unsigned_t<T>;
  Unsigned sum = 0;
  T every_bit = 0, flipped = 0, least = AtomicKernel<T>::start_of_least(),
    greatest = AtomicKernel<T>::start_of_greatest();
  std::vector<T> given = {T{5}}, gone = taken;
  for (std::uint32_t id = 0; id < threads; ++id) {
    const T mine = contribution<T>(id);
    every_bit = static_cast<T>(every_bit | bit<T>(id));
    flipped = static_cast<T>(flipped ^ mine);
    sum += static_cast<Unsigned>(mine);
    least = std::min(least, mine);
    greatest = std::max(greatest, mine);
    given.push_back(mine);
  }
  gone.push_back(words.exchanged);
  std::sort(given.begin(), given.end());
  std::sort(gone.begin(), gone.end());
  BEELINE_CHECK_EQ(static_cast<T>(threads), words.sum);
  BEELINE_CHECK_EQ(every_bit, words.bits_set);
  BEELINE_CHECK_EQ(static_cast<T>(~every_bit), words.bits_cleared);
  BEELINE_CHECK_EQ(flipped, words.flipped);
  BEELINE_CHECK_EQ(least, words.least);
  BEELINE_CHECK_EQ(greatest, words.greatest);
  BEELINE_CHECK_EQ(static_cast<T>(3 * threads), words.swapped);
  BEELINE_CHECK_EQ(static_cast<T>(sum), words.reduced_sum);
  BEELINE_CHECK_EQ(every_bit, words.reduced_or);
  BEELINE_CHECK_EQ(static_cast<T>(~every_bit), words.reduced_and);
  BEELINE_CHECK_EQ(flipped, words.reduced_xor);
  BEELINE_CHECK(given == gone);  // exchange returns every value exactly once
}

template <class T>
void all_operations(RankTest& test, Heap heap) {
  World& world = test.world();
  const unsigned threads = blocks * test.block_threads();
  const SymmetricArray<AtomicWords<T>> words(world, 1, heap);
  const SymmetricArray<T> tickets(world, most_threads), taken(world, most_threads);
  const AtomicWords<T> start{
      0, 0, static_cast<T>(~T{0}), 0, AtomicKernel<T>::start_of_least(), AtomicKernel<T>::start_of_greatest(), 5, 0,
      0, 0, static_cast<T>(~T{0}), 0};
  world.copy(words.data(), &start, sizeof start);
  const auto target = static_cast<std::uint32_t>(test.random().below(test.size()));
  const bool on_gpu_memory = heap == Heap::symmetric && test.on_gpu(static_cast<int>(target));
  const auto has_atomics_there = [&](int rank) {
    if (!test.on_one_node(rank, static_cast<int>(target))) return true;  // by the engine of the target
    return on_gpu_memory ? test.on_gpu(rank) : test.has_host_atomics(rank);
  };
  const bool takes_part = has_atomics_there(test.rank());
  std::uint32_t first_id = 0;
  for (int rank = 0; rank < test.rank(); ++rank)
    first_id += has_atomics_there(rank) ? blocks * test.block_threads(rank) : 0;
  world.barrier();
  test.run(test.shape(blocks, false), AtomicKernel<T>{},
           AtomicArguments<T>{words.data(), tickets.data(), taken.data(), target, first_id},
           join("atomics of ", sizeof(T), " bytes"));
  world.barrier();
  std::vector<T> all_tickets = gather_values(test, tickets.data(), takes_part ? threads : 0);
  const std::vector<T> all_taken = gather_values(test, taken.data(), takes_part ? threads : 0);
  std::sort(all_tickets.begin(), all_tickets.end());
  for (std::size_t i = 0; i < all_tickets.size(); ++i) BEELINE_CHECK_EQ(static_cast<T>(i), all_tickets[i]);
  check_words(test.read_value(words.at(static_cast<int>(target))), static_cast<std::uint32_t>(all_tickets.size()),
              all_taken);
  world.barrier();
}

template <class T>
void all_operations_on_both_heaps(RankTest& test) {
  all_operations<T>(test, Heap::symmetric);
  bool any_on_host_memory = false;
  for (int rank = 0; rank < test.size(); ++rank) any_on_host_memory = any_on_host_memory || test.has_host_atomics(rank);
  if (any_on_host_memory) all_operations<T>(test, Heap::pinned);
}

BEELINE_CASE(atomic, every_atomic, 1) {
  all_operations_on_both_heaps<std::uint32_t>(test);
  all_operations_on_both_heaps<std::int32_t>(test);
  all_operations_on_both_heaps<std::uint64_t>(test);
  all_operations_on_both_heaps<std::int64_t>(test);
}

}  // namespace

}  // namespace beeline_test::atomic_cases
