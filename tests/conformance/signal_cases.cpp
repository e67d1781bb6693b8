// SPDX-License-Identifier: Apache-2.0
// signal, signal_add, test, wait with every comparison and time-outs, wait_any with exchange.
#include "beeline/device/signaled_word.hpp"
#include "tests/conformance/group_kind.hpp"
#include "tests/conformance/reachable_array.hpp"

namespace beeline_test::signal_cases {

namespace {

using namespace beeline;

struct AddArguments {
  std::uint64_t* sum;
  std::uint64_t total;
  std::uint32_t target, repeats;
  Order order;
};

/// Every group of every rank that has atomics on the signal adds to it; its owner waits for the sum.
template <GroupKind kind>
struct AddKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, AddArguments a) const {
    const auto group = group_of<kind>(grid);
    const std::uint64_t index = place_of<kind>(grid).index;
    for (std::uint32_t i = 0; i < a.repeats && has_atomics(ctx, a.sum, a.target); ++i)
      signal_add(group, ctx, a.sum, index + 1, a.target, a.order);
    if (ctx.rank != a.target) return;
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(group, ctx, a.sum, Compare::equal, a.total));
    BEELINE_DEVICE_CHECK_EQ(report, true, beeline::test(a.sum, Compare::equal, a.total));
  }
};

///   of_gpus  the groups by which GPUs add at the same time
template <GroupKind kind>
void add_by(RankTest& test, GroupKind of_gpus) {
  constexpr unsigned blocks = 2;
  constexpr std::uint32_t repeats = 25;
  std::uint64_t total = 0;  // by ranks of this rank's kind, and by those for which an engine does their atomics here
  for (int rank = 0; rank < test.size(); ++rank) {
    const AccessToPeer to = test.world().host_context().access_to(static_cast<std::uint32_t>(rank));
    if (to.access != PeerAccess::engine && test.on_gpu(rank) != test.on_gpu()) continue;
    const GroupKind of_hosts = of_gpus == GroupKind::warp ? GroupKind::thread : of_gpus;
    const std::uint64_t groups = groups_in(test.on_gpu(rank) ? of_gpus : of_hosts, blocks, test.block_threads(rank));
    total += repeats * groups * (groups + 1) / 2;
  }
  for (const Order order : {Order::relaxed, Order::memory}) {
    const SymmetricArray<std::uint64_t> sum(test.world(), 1);
    const auto target = static_cast<std::uint32_t>(test.random().below(test.size()));
    test.run(test.shape(blocks, true), AddKernel<kind>{}, AddArguments{sum.data(), total, target, repeats, order},
             join(name(kind), " groups add at rank ", target));
    test.world().barrier();
    BEELINE_CHECK_EQ(test.rank() == static_cast<int>(target) ? total : 0, test.read_value(sum.data()));
  }
}

BEELINE_CASE(signal, add_to_a_signal, 1) {
  constexpr std::array of_gpus = {GroupKind::thread, GroupKind::warp, GroupKind::block};
  std::size_t call = 0;
  for_each_group_kind(test.world(),
                      [&]<GroupKind kind>() { add_by<kind>(test, test.world().mixed() ? of_gpus[call++] : kind); });
}

/// One wait: its comparison and value, and a value to send that makes the comparison true and stays in the signal.
struct CompareStep {
  Compare compare;
  std::uint64_t value, sent;
};
constexpr std::uint32_t compare_steps = 9;
BEELINE_HOST_DEVICE inline CompareStep compare_step(std::uint32_t step) {
  constexpr std::uint64_t huge = ~std::uint64_t{0};
  switch (step) {
    case 0:
      return {Compare::equal, 7, 7};
    case 1:
      return {Compare::not_equal, 7, 9};
    case 2:
      return {Compare::greater, 9, 12};
    case 3:
      return {Compare::greater_equal, 20, 20};
    case 4:
      return {Compare::less, 5, 3};
    case 5:
      return {Compare::less_equal, 2, 2};
    case 6:
      return {Compare::equal, huge, huge};
    case 7:
      return {Compare::less, huge, huge - 1};
    default:
      return {Compare::less_equal, 0, 0};
  }
}

struct CompareArguments {
  std::uint64_t *signal, *ready;            ///< set ahead, and behind
  const std::uint64_t *arrived, *is_ready;  ///< the same here
  std::uint32_t to, from;
};

/// Each wait times out twice. Then the rank signals that it is ready, and the wait ends with the peer's value.
template <GroupKind kind>
struct CompareKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, CompareArguments a) const {
    const auto group = group_of<kind>(grid);
    if (place_of<kind>(grid).index != 0) return;
    for (std::uint32_t i = 0; i < compare_steps; ++i) {
      const CompareStep step = compare_step(i);
      BEELINE_DEVICE_CHECK_EQ(report, false, beeline::test(a.arrived, step.compare, step.value));
      BEELINE_DEVICE_CHECK_EQ(report, Status::timeout,
                              wait(group, ctx, a.arrived, step.compare, step.value, a.from, Timeout::test()));
      BEELINE_DEVICE_CHECK_EQ(report, Status::timeout,
                              wait(group, ctx, a.arrived, step.compare, step.value, a.from, Timeout{20'000}));
      signal(group, ctx, a.ready, i + 1, a.from);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(group, ctx, a.is_ready, Compare::greater_equal, i + 1, a.to));
      signal(group, ctx, a.signal, step.sent, a.to, i % 2 == 0 ? Order::memory : Order::relaxed);
      Status status = Status::timeout;
      while (status == Status::timeout)
        status = wait(group, ctx, a.arrived, step.compare, step.value, a.from, Timeout{50'000});
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
      BEELINE_DEVICE_CHECK_EQ(report, true, beeline::test(a.arrived, step.compare, step.value));
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                              wait(group, ctx, a.arrived, step.compare, step.value, a.from, Timeout::test()));
    }
  }
};

BEELINE_CASE(signal, wait_with_every_comparison, 1) {
  for_each_group_kind(test.world(), [&]<GroupKind kind>() {
    for (const Heap heap : {Heap::symmetric, Heap::pinned}) {
      const ReachableArray<std::uint64_t> signal(test, 1, heap), ready(test, 1, heap);
      const int to = test.ahead(1), from = test.behind(1);
      test.run(test.shape(1, true), CompareKernel<kind>{},
               CompareArguments{signal.at(to), ready.at(from), signal.used_by(from), ready.used_by(to),
                                static_cast<std::uint32_t>(to), static_cast<std::uint32_t>(from)},
               join(name(kind), " groups compare"));
    }
  });
}

struct AnyArguments {
  std::uint64_t* signals;   ///< [count] each is set once, by one rank
  std::uint64_t* received;  ///< [count] sums of the values that exchange returned
  std::uint64_t* taken;     ///< how many signals were taken
  std::uint32_t count, per_rank;
};

BEELINE_HOST_DEVICE inline std::uint64_t announced(std::uint32_t index) { return 1000 + index; }

/// Takes a signal that is set once; 0 if another thread was first. Without atomics on it only one thread may call.
BEELINE_HOST_DEVICE inline std::uint64_t take(const Context& ctx, std::uint64_t* word, bool has_atomics_here) {
  std::uint64_t value = 0;
  if (has_atomics_here) return exchange(ctx, word, 0, value) == Status::ok ? value : 0;
  value = detail::load_signal(word, Order::memory);
  signal(Thread{}, ctx, word, 0, ctx.rank);
  return value;
}

/// All threads of all blocks wait for any signal of one range, and each signal is taken by one of them. If the kernel
/// has no atomics on its signals, one thread waits.
struct AnyKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, AnyArguments a) const {
    if (grid.thread_rank() == 0)
      for (std::uint32_t peer = 0; peer < ctx.size; ++peer)
        for (std::uint32_t i = a.per_rank; i-- > 0;) {
          const std::uint32_t index = i * ctx.size + ctx.rank;
          signal(Thread{}, ctx, &a.signals[index], announced(index), peer);
        }
    const bool has_atomics_here = has_atomics(ctx, a.signals, ctx.rank);
    if (!has_atomics_here && grid.thread_rank() != 0) return;
    const std::uint64_t start = machine::clock_ns();
    detail::SystemAtomic<std::uint64_t> taken(*a.taken);
    while (taken.load(std::memory_order_relaxed) < a.count) {
      std::uint32_t index = ~0u;
      const Status status = wait_any(ctx, a.signals, a.count, index, Timeout{20'000});
      if (status == Status::ok) {
        const std::uint64_t value = take(ctx, &a.signals[index], has_atomics_here);
        if (value == 0) continue;  // another thread was first
        atomic_add(ctx, &a.received[index], value, ctx.rank);
        taken.fetch_add(1, std::memory_order_relaxed);
        continue;
      }
      BEELINE_DEVICE_CHECK_EQ(report, Status::timeout, status);
      BEELINE_DEVICE_CHECK_EQ(report, ~0u, index);
      if (status != Status::timeout || machine::clock_ns() - start > ctx.deadline_ns) {
        BEELINE_DEVICE_CHECK_EQ(report, a.count, taken.load(std::memory_order_relaxed));
        return;
      }
    }
  }
};

BEELINE_CASE(signal, wait_for_any, 1) {
  constexpr std::uint32_t per_rank = 12;
  const std::uint32_t count = per_rank * static_cast<std::uint32_t>(test.size());
  for (const Heap heap : {test.common_heap(), Heap::pinned}) {
    const SymmetricArray<std::uint64_t> signals(test.world(), count, heap), received(test.world(), count),
        taken(test.world(), 1);
    test.run(test.shape(2, true), AnyKernel{},
             AnyArguments{signals.data(), received.data(), taken.data(), count, per_rank}, "wait_any");
    for (std::uint32_t index = 0; index < count; ++index)
      BEELINE_CHECK_EQ(announced(index), test.read_value(received.data() + index));
    test.world().barrier();
  }
}

struct LookKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report,
                                      std::uint64_t* signals) const {
    if (grid.thread_rank() != 0) return;
    std::uint32_t index = 77;
    BEELINE_DEVICE_CHECK_EQ(report, Status::timeout, wait_any(ctx, signals, 4, index, Timeout::test()));
    BEELINE_DEVICE_CHECK_EQ(report, 77, index);
    std::uint64_t held = 5;
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, exchange(ctx, &signals[2], 41, held));
    BEELINE_DEVICE_CHECK_EQ(report, 0, held);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait_any(ctx, signals, 4, index, Timeout::test()));
    BEELINE_DEVICE_CHECK_EQ(report, 2, index);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, exchange(ctx, &signals[2], 0, held));
    BEELINE_DEVICE_CHECK_EQ(report, 41, held);
  }
};

BEELINE_CASE(signal, wait_for_any_looks_once, 1) {
  const SymmetricArray<std::uint64_t> signals(test.world(), 4);
  test.run(test.shape(1, true), LookKernel{}, signals.data(), "wait_any that looks once");
}

struct SignaledWordArguments {
  SignaledWord *word, *answer;       ///< at the rank ahead, and at the rank behind
  SignaledWord *arrived, *answered;  ///< on this rank: from the rank behind; the answer of the rank ahead
  std::uint64_t key;
  std::uint32_t ahead, behind, rounds;
};

BEELINE_HOST_DEVICE constexpr std::uint64_t signaled_value(std::uint64_t key, std::uint64_t rank, std::uint64_t round) {
  return (key + rank * 1000003 + round) * 0x9e3779b97f4a7c15u;
}

/// Passes words around a ring: each round's value must come with its signal, not an older value or half of one.
struct SignaledWordKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report,
                                      SignaledWordArguments a) const {
    if (grid.thread_rank() != 0) return;
    for (std::uint64_t round = 1; round <= a.rounds; ++round) {
      const std::uint64_t mine = signaled_value(a.key, ctx.rank, round);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, put_signal(ctx, a.word, mine, round, a.ahead));
      std::uint64_t value = 0;
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                              beeline::wait(ctx, a.arrived, Compare::equal, round, value, a.behind));
      BEELINE_DEVICE_CHECK_EQ(report, signaled_value(a.key, a.behind, round), value);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, put_signal(ctx, a.answer, value, round, a.behind));
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                              beeline::wait(ctx, a.answered, Compare::greater_equal, round, value, a.ahead));
      BEELINE_DEVICE_CHECK_EQ(report, mine, value);
    }
    std::uint64_t untouched = 5;
    BEELINE_DEVICE_CHECK_EQ(
        report, Status::timeout,
        beeline::wait(ctx, a.arrived, Compare::greater, std::uint64_t{a.rounds}, untouched, a.behind, Timeout{20'000}));
    BEELINE_DEVICE_CHECK_EQ(report, std::uint64_t{5}, untouched);
  }
};

BEELINE_CASE(signal, words_with_their_signals, 1) {
  for (const Heap heap : {Heap::symmetric, Heap::pinned}) {
    const ReachableArray<SignaledWord> words(test, 1, heap), answers(test, 1, heap);
    const int to = test.ahead(1), from = test.behind(1);
    const std::uint64_t key = test.random().next();  // the same on every rank
    test.run(test.shape(1, true), SignaledWordKernel{},
             SignaledWordArguments{words.at(to), answers.at(from), words.used_by(from), answers.used_by(to), key,
                                   static_cast<std::uint32_t>(to), static_cast<std::uint32_t>(from),
                                   test.on_gpu() && !test.world().mixed() ? 2000u : 200u},
             "words with their signals");
    test.world().barrier();
  }
}

}  // namespace

}  // namespace beeline_test::signal_cases
