// SPDX-License-Identifier: Apache-2.0
// put, put_signal, get, put_value, flush, quiet, fence: by every kind of group, on both heaps and other memory, at any
// size and alignment.
#include <algorithm>

#include "tests/conformance/foreign_memory.hpp"
#include "tests/conformance/group_kind.hpp"
#include "tests/conformance/guarded_area.hpp"
#include "tests/conformance/reachable_array.hpp"

namespace beeline_test::put_get_cases {

namespace {

using namespace beeline;

constexpr std::size_t most_groups = 1024;

/// The longest transfer; short in mixed worlds: single threads are slow across the bus between a GPU and the host.
std::size_t longest(const World& world) {
  return world.mixed() ? std::min(most_bytes, std::size_t{64} << 10) : most_bytes;
}

/// Groups that take part, each paired with one of the next rank: ranks of different kinds share only their blocks.
template <GroupKind kind>
std::uint32_t paired_groups(const RankTest& test, const World& world, unsigned blocks) {
  return world.mixed() ? blocks : groups_in(kind, blocks, test.block_threads());
}

/// How the receiver learns that the data has arrived.
enum class Announce : std::uint32_t {
  put_signal,
  put_signal_add,
  put_then_signal,
  flush_then_signal,
  quiet_then_value,
  fence_then_value
};
constexpr int announce_kinds = 6;

struct PutArguments {
  std::byte *source, *destination;
  const std::byte* arrived;           ///< on this rank, written by the rank behind
  std::byte* snapshot;                ///< what the receiver read directly after the announcement
  std::uint64_t *signals, *arrivals;  ///< [groups] set at the rank ahead; set on this rank
  std::uint64_t value;
  std::size_t bytes;
  std::uint32_t to, from, groups;
  Announce announce;
  QueueId queue;
};

/// A group's share of `bytes`.
struct Slice {
  BEELINE_HOST_DEVICE Slice(std::size_t bytes, GroupPlace place)
      : first(bytes * place.index / place.count), last(bytes * (place.index + 1) / place.count) {}
  std::size_t first, last;
};

template <class Group>
BEELINE_HOST_DEVICE void copy_slice(const Group& group, std::byte* to, const std::byte* from, Slice slice) {
  for (std::size_t i = slice.first + group.thread_rank(); i < slice.last; i += group.size()) to[i] = from[i];
}

template <class Group>
BEELINE_HOST_DEVICE void put_slice(const Group& group, const Context& ctx, const PutArguments& a, Slice slice,
                                   std::uint64_t* signal) {
  std::byte* to = a.destination + slice.first;
  const std::byte* from = a.source + slice.first;
  const std::size_t bytes = slice.last - slice.first;
  if (a.announce == Announce::put_signal_add && has_atomics(ctx, signal, a.to)) {
    put_signal_add(group, ctx, to, from, bytes, signal, a.value - 1, a.to, a.queue);
    put_signal_add(group, ctx, to, from, 0, signal, 1, a.to, a.queue);
    return;
  }
  if (a.announce <= Announce::put_signal_add) {
    put_signal(group, ctx, to, from, bytes, signal, a.value, a.to, a.queue);
    return;
  }
  put(group, ctx, to, from, bytes, a.to, a.queue);
  if (a.announce == Announce::flush_then_signal) {
    static_cast<void>(flush(group, ctx, a.queue));  // the host reports its errors
    for (std::size_t i = slice.first + group.thread_rank(); i < slice.last; i += group.size())
      a.source[i] = std::byte{0xee};
  }
  if (a.announce == Announce::quiet_then_value || a.announce == Announce::fence_then_value) {
    if (a.announce == Announce::quiet_then_value)
      static_cast<void>(quiet(group, ctx, a.queue));
    else
      group.sync();
    if (group.thread_rank() != 0) return;
    if (a.announce == Announce::fence_then_value) fence();
    put_value(ctx, signal, a.value, a.to, a.queue);
    return;
  }
  beeline::signal(group, ctx, signal, a.value, a.to, Order::memory, a.queue);
}

template <GroupKind kind>
struct PutKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, PutArguments a) const {
    const auto group = group_of<kind>(grid);
    const std::uint32_t index = place_of<kind>(grid).index;
    if (index >= a.groups) return;
    const Slice slice(a.bytes, {index, a.groups});
    put_slice(group, ctx, a, slice, &a.signals[index]);
    const Status status = wait(group, ctx, &a.arrivals[index], Compare::equal, a.value, a.from);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
    copy_slice(group, a.snapshot, a.arrived, slice);
  }
};

/// Puts from a heap, or from `elsewhere`: [most_bytes + 512].
template <GroupKind kind>
void put_one(RankTest& test, Announce announce, std::byte* elsewhere = nullptr) {
  World& world = test.world();
  Random& random = test.random();
  const std::size_t bytes = random.message_bytes(longest(world)), offset = random.offset(),
                    from_offset = random.offset();
  const int distance = random.below(test.size()), to = test.ahead(distance), from = test.behind(distance);
  const SymmetricArray<std::byte> heap_source(world, bytes + from_offset, test.any_heap());
  const ReachableArray<std::byte> memory(test, GuardedArea::needed(offset, bytes), test.any_heap());
  const SymmetricArray<std::byte> snapshot(world, bytes);
  const ReachableArray<std::uint64_t> signals(test, most_groups, test.any_heap());
  std::byte* const source = (elsewhere != nullptr ? elsewhere : heap_source.data()) + from_offset;
  const std::uint64_t key = random.next();
  const auto data_of = [&](int rank) { return pattern(key + static_cast<std::uint64_t>(rank), bytes); };
  test.write(source, data_of(test.rank()));
  GuardedArea area(test, memory.used_by(from), offset, bytes);
  const std::string what =
      join(name(kind), " groups, announce ", static_cast<int>(announce), ", ", bytes, " bytes at offset ", offset,
           " from offset ", from_offset, ", distance ", distance, elsewhere != nullptr ? ", from other memory" : "");
  const unsigned blocks = 1 + static_cast<unsigned>(random.below(3));
  const PutArguments arguments{source,
                               memory.at(to) + guard_bytes + offset,
                               area.data(),
                               snapshot.data(),
                               signals.at(to),
                               signals.used_by(from),
                               random.next(),
                               bytes,
                               static_cast<std::uint32_t>(to),
                               static_cast<std::uint32_t>(from),
                               paired_groups<kind>(test, world, blocks),
                               announce,
                               QueueId{static_cast<std::uint32_t>(random.below(static_cast<int>(max_queues)))}};
  world.barrier();
  test.run(test.shape(blocks, true), PutKernel<kind>{}, arguments, what);
  const std::vector<std::byte> expected = data_of(from);
  check_bytes(expected, test.read(snapshot.data(), bytes), what + ": seen at the signal");
  area.check(expected, what);
}

BEELINE_CASE(put_get, put_and_announce, 1) {
  const int repeats = under_thread_sanitizer ? 1 : 10;
  for_each_group_kind(test.world(), [&]<GroupKind kind>() {
    for (int i = 0; i < repeats * announce_kinds; ++i) {
      const auto announce = static_cast<Announce>(i % announce_kinds);
      // ThreadSanitizer does not know fences, and would report the reads that only a fence orders.
      if (under_thread_sanitizer && announce >= Announce::quiet_then_value) continue;
      put_one<kind>(test, announce);
    }
  });
}

BEELINE_CASE(put_get, put_from_other_memory, 1) {
  const ForeignMemory source(test, most_bytes + 512);
  for_each_group_kind(test.world(), [&]<GroupKind kind>() {
    for (int i = 0; i < (under_thread_sanitizer ? 1 : 5); ++i) put_one<kind>(test, Announce::put_signal, source.data());
  });
}

struct RoundsArguments {
  const std::byte* source;                             ///< [rounds, bytes]
  std::byte* destination;                              ///< [bytes] ahead
  const std::byte* arrived;                            ///< [bytes] here
  std::byte* snapshots;                                ///< [rounds, bytes]
  std::uint64_t *signals, *credits;                    ///< [groups] set at the rank ahead, and at the rank behind
  const std::uint64_t *arrivals, *credits_from_ahead;  ///< [groups] on this rank
  std::size_t bytes;
  std::uint32_t rounds, to, from, groups;
};

/// Writes the same memory in each round: a receiver that sees a signal sees that round's data, and no later round's.
template <GroupKind kind>
struct RoundsKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, RoundsArguments a) const {
    const auto group = group_of<kind>(grid);
    const std::uint32_t index = place_of<kind>(grid).index;
    if (index >= a.groups) return;
    const Slice slice(a.bytes, {index, a.groups});
    for (std::uint64_t round = 0; round < a.rounds; ++round) {
      put_signal(group, ctx, a.destination + slice.first, a.source + round * a.bytes + slice.first,
                 slice.last - slice.first, &a.signals[index], round + 1, a.to);
      const Status arrived = wait(group, ctx, &a.arrivals[index], Compare::greater_equal, round + 1, a.from);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, arrived);
      copy_slice(group, a.snapshots + round * a.bytes, a.arrived, slice);
      signal(group, ctx, &a.credits[index], round + 1, a.from);
      const Status credit = wait(group, ctx, &a.credits_from_ahead[index], Compare::greater_equal, round + 1, a.to);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, credit);
    }
  }
};

template <GroupKind kind>
void put_rounds_by(RankTest& test, std::uint32_t rounds) {
  World& world = test.world();
  const std::size_t bytes = 1 + test.random().below(std::size_t{6000});
  const SymmetricArray<std::byte> source(world, rounds * bytes), snapshots(world, rounds * bytes);
  const ReachableArray<std::byte> destination(test, bytes, test.any_heap());
  const ReachableArray<std::uint64_t> signals(test, most_groups, test.any_heap()),
      credits(test, most_groups, test.any_heap());
  const int to = test.ahead(1), from = test.behind(1);
  const std::uint64_t key = test.random().next();
  const auto data_of = [&](int rank) { return pattern(key + static_cast<std::uint64_t>(rank), rounds * bytes); };
  test.write(source.data(), data_of(test.rank()));
  world.barrier();
  constexpr unsigned blocks = 2;
  const RoundsArguments arguments{source.data(),
                                  destination.at(to),
                                  destination.used_by(from),
                                  snapshots.data(),
                                  signals.at(to),
                                  credits.at(from),
                                  signals.used_by(from),
                                  credits.used_by(to),
                                  bytes,
                                  rounds,
                                  static_cast<std::uint32_t>(to),
                                  static_cast<std::uint32_t>(from),
                                  paired_groups<kind>(test, world, blocks)};
  const std::string what = join(name(kind), " groups, ", rounds, " rounds of ", bytes, " bytes");
  test.run(test.shape(blocks, true), RoundsKernel<kind>{}, arguments, what);
  check_bytes(data_of(from), test.read(snapshots.data(), rounds * bytes), what);
}

BEELINE_CASE(put_get, put_rounds, 1) {
  const std::uint32_t rounds = under_thread_sanitizer ? 20 : test.on_gpu() && !test.world().mixed() ? 500 : 200;
  for_each_group_kind(test.world(), [&]<GroupKind kind>() { put_rounds_by<kind>(test, rounds); });
}

struct GetArguments {
  const std::byte* source;
  std::byte* destination;
  std::size_t bytes;
  std::uint32_t peer;
};

template <GroupKind kind>
struct GetKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, GetArguments a) const {
    const auto group = group_of<kind>(grid);
    const Slice slice(a.bytes, place_of<kind>(grid));
    const Status status =
        get(group, ctx, a.destination + slice.first, a.source + slice.first, slice.last - slice.first, a.peer);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
  }
};

/// Gets to a heap, or to `elsewhere`, which has room for a guarded area of most_bytes at any offset.
template <GroupKind kind>
void get_one(RankTest& test, std::byte* elsewhere = nullptr) {
  World& world = test.world();
  Random& random = test.random();
  const std::size_t bytes = random.message_bytes(longest(world)), offset = random.offset(),
                    from_offset = random.offset();
  const int distance = random.below(test.size()), peer = test.ahead(distance);
  const ReachableArray<std::byte> source(test, bytes + from_offset, test.any_heap());
  const SymmetricArray<std::byte> heap_memory(world, GuardedArea::needed(offset, bytes), test.any_heap());
  const std::uint64_t key = random.next();
  const auto data_of = [&](int rank) { return pattern(key + static_cast<std::uint64_t>(rank), bytes); };
  test.write(source.used_by(test.behind(distance)) + from_offset, data_of(test.rank()));
  GuardedArea area(test, elsewhere != nullptr ? elsewhere : heap_memory.data(), offset, bytes);
  const std::string what = join(name(kind), " groups, ", bytes, " bytes at offset ", offset, " from offset ",
                                from_offset, " of rank ", peer, elsewhere != nullptr ? ", to other memory" : "");
  world.barrier();
  test.run(test.shape(1 + static_cast<unsigned>(random.below(3)), false), GetKernel<kind>{},
           GetArguments{source.at(peer) + from_offset, area.data(), bytes, static_cast<std::uint32_t>(peer)}, what);
  area.check(data_of(peer), what);
  world.barrier();  // no rank reads the source any more
}

BEELINE_CASE(put_get, get_slices, 1) {
  for_each_group_kind(test.world(), [&]<GroupKind kind>() {
    for (int i = 0; i < (under_thread_sanitizer ? 3 : 40); ++i) get_one<kind>(test);
  });
}

BEELINE_CASE(put_get, get_to_other_memory, 1) {
  const ForeignMemory destination(test, GuardedArea::needed(512, most_bytes));
  for_each_group_kind(test.world(), [&]<GroupKind kind>() {
    for (int i = 0; i < (under_thread_sanitizer ? 1 : 5); ++i) get_one<kind>(test, destination.data());
  });
}

/// An element without padding whose size is no power of two.
struct Triple {
  std::uint32_t a, b, c;
};

struct ElementArguments {
  const Triple* source;
  Triple *destination, *got;            ///< ahead, and here
  std::uint64_t *signal, *seen;         ///< set at the rank ahead, and at the rank behind
  const std::uint64_t *arrived, *free;  ///< on this rank: elements from behind arrived; elements ahead may be read
  std::size_t count;
  std::uint32_t to, from;
};

/// Puts elements instead of bytes, and gets the elements that the rank ahead has just received.
struct ElementKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, ElementArguments a) const {
    const auto& block = grid.block();
    put(block, ctx, a.destination, a.source, a.count, a.to);
    signal(block, ctx, a.signal, 1, a.to);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(block, ctx, a.arrived, Compare::equal, 1, a.from));
    signal(block, ctx, a.seen, 1, a.from);  // this rank's destination may be read now
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(block, ctx, a.free, Compare::equal, 1, a.to));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, get(block, ctx, a.got, a.destination, a.count, a.to));
  }
};

BEELINE_CASE(put_get, put_and_get_elements, 1) {
  World& world = test.world();
  const std::size_t count = 1 + test.random().below(std::size_t{3000}), bytes = count * sizeof(Triple);
  const SymmetricArray<Triple> source(world, count), got(world, count);
  const ReachableArray<Triple> destination(test, count);
  const ReachableArray<std::uint64_t> arrived(test, 1), seen(test, 1);
  const int to = test.ahead(1), from = test.behind(1);
  const std::uint64_t key = test.random().next();
  const auto data_of = [&](int rank) { return pattern(key + static_cast<std::uint64_t>(rank), bytes); };
  test.write(source.data(), data_of(test.rank()));
  world.barrier();
  test.run(test.shape(1, true), ElementKernel{},
           ElementArguments{source.data(), destination.at(to), got.data(), arrived.at(to), seen.at(from),
                            arrived.used_by(from), seen.used_by(to), count, static_cast<std::uint32_t>(to),
                            static_cast<std::uint32_t>(from)},
           "elements");
  check_bytes(data_of(from), test.read(destination.used_by(from), bytes), "elements put");
  check_bytes(data_of(test.rank()), test.read(got.data(), bytes), "own elements, got back from the peer");
  world.barrier();
}

struct Scalars {
  std::uint64_t eight;
  std::uint32_t four;
  std::uint16_t two;
  std::uint8_t one;
};

struct ScalarArguments {
  Scalars *scalars, *arrived;  ///< ahead, and here
  std::uint32_t to, from;
};

template <class T>
BEELINE_HOST_DEVICE Status await_scalar(const Context& ctx, T* word, T value, std::uint32_t from) {
  return poll_until(ctx, {Operation::user, from, 0, value}, Timeout::none(), [=](std::uint64_t& observed) {
    observed = load_value(word);
    return observed == value;
  });
}

struct ScalarKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, ScalarArguments a) const {
    if (grid.thread_rank() != 0) return;
    put_value(ctx, &a.scalars->eight, std::uint64_t{0x1122334455667788}, a.to);
    put_value(ctx, &a.scalars->four, std::uint32_t{0x99aabbcc}, a.to);
    put_value(ctx, &a.scalars->two, std::uint16_t{0xddee}, a.to);
    put_value(ctx, &a.scalars->one, std::uint8_t{0xff}, a.to);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                            await_scalar(ctx, &a.arrived->eight, std::uint64_t{0x1122334455667788}, a.from));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, await_scalar(ctx, &a.arrived->four, std::uint32_t{0x99aabbcc}, a.from));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, await_scalar(ctx, &a.arrived->two, std::uint16_t{0xddee}, a.from));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, await_scalar(ctx, &a.arrived->one, std::uint8_t{0xff}, a.from));
    // That a scalar has arrived does not show that the engine has finished with its memory: `quiet` does.
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, quiet(Thread{}, ctx));
  }
};

BEELINE_CASE(put_get, put_scalars, 1) {
  for (const Heap heap : {Heap::symmetric, Heap::pinned}) {
    const ReachableArray<Scalars> scalars(test, 1, heap);
    const int to = test.ahead(1), from = test.behind(1);
    test.run(test.shape(1, true), ScalarKernel{},
             ScalarArguments{scalars.at(to), scalars.used_by(from), static_cast<std::uint32_t>(to),
                             static_cast<std::uint32_t>(from)},
             "scalars");
  }
}

}  // namespace

}  // namespace beeline_test::put_get_cases
