// SPDX-License-Identifier: Apache-2.0
// put, put_signal, get, put_value, flush, quiet, fence: by every group, on both heaps, at any size and alignment.
#include "tests/conformance/group_kind.hpp"
#include "tests/conformance/guarded_area.hpp"
#include "tests/conformance/rank_test.hpp"

namespace beeline_test {

namespace {

using namespace beeline;

constexpr std::size_t most_groups = 1024;

/// How the receiver learns that the data is there.
enum class Announce : std::uint32_t {
  put_signal,
  put_then_signal,
  flush_then_signal,
  quiet_then_value,
  fence_then_value
};
constexpr int announce_kinds = 5;

struct PutArguments {
  std::byte *source, *destination;
  std::byte* snapshot;     ///< what the receiver saw as soon as it knew
  std::uint64_t* signals;  ///< [groups]
  std::uint64_t value;
  std::size_t bytes;
  std::uint32_t to, from;
  Announce announce;
  Queue queue;
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
  if (a.announce == Announce::put_signal) {
    put_signal(group, ctx, to, from, bytes, signal, a.value, a.to, a.queue);
    return;
  }
  put(group, ctx, to, from, bytes, a.to, a.queue);
  if (a.announce == Announce::flush_then_signal) {
    flush(group, ctx, a.queue);
    for (std::size_t i = slice.first + group.thread_rank(); i < slice.last; i += group.size())
      a.source[i] = std::byte{0xee};
  }
  if (a.announce == Announce::quiet_then_value || a.announce == Announce::fence_then_value) {
    if (a.announce == Announce::quiet_then_value)
      quiet(group, ctx, a.queue);
    else
      group.sync();
    if (group.thread_rank() != 0) return;
    if (a.announce == Announce::fence_then_value) fence();
    put_value(ctx, signal, a.value, a.to);
    return;
  }
  beeline::signal(group, ctx, signal, a.value, a.to);
}

template <GroupKind kind>
struct PutKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, PutArguments a) const {
    const auto group = group_of<kind>(grid);
    const GroupPlace place = place_of<kind>(grid);
    const Slice slice(a.bytes, place);
    put_slice(group, ctx, a, slice, &a.signals[place.index]);
    const Status status = wait(group, ctx, &a.signals[place.index], Compare::equal, a.value, a.from);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
    copy_slice(group, a.snapshot, a.destination, slice);
  }
};

template <GroupKind kind>
void put_one(RankTest& test, Announce announce) {
  World& world = test.world();
  Random& random = test.random();
  const std::size_t bytes = random.message_bytes(most_bytes), offset = random.offset(), from_offset = random.offset();
  const int distance = random.below(test.size());
  const SymmetricArray<std::byte> source(world, bytes + from_offset, test.any_heap());
  const SymmetricArray<std::byte> memory(world, GuardedArea::needed(offset, bytes), test.any_heap());
  const SymmetricArray<std::byte> snapshot(world, bytes);
  const SymmetricArray<std::uint64_t> signals(world, most_groups, test.any_heap());
  const std::uint64_t key = random.next();
  const auto data_of = [&](int rank) { return pattern(key + static_cast<std::uint64_t>(rank), bytes); };
  test.write(source.data() + from_offset, data_of(test.rank()));
  GuardedArea area(test, memory.data(), offset, bytes);
  const std::string what = join(name(kind), " groups, announce ", static_cast<int>(announce), ", ", bytes,
                                " bytes at offset ", offset, " from offset ", from_offset, ", distance ", distance);
  const PutArguments arguments{source.data() + from_offset,
                               area.data(),
                               snapshot.data(),
                               signals.data(),
                               random.next(),
                               bytes,
                               static_cast<std::uint32_t>(test.ahead(distance)),
                               static_cast<std::uint32_t>(test.behind(distance)),
                               announce,
                               Queue{static_cast<std::uint32_t>(random.below(static_cast<int>(max_queues)))}};
  const unsigned blocks = 1 + static_cast<unsigned>(random.below(3));
  world.barrier();
  test.run(test.shape(blocks, true), PutKernel<kind>{}, arguments, what);
  const std::vector<std::byte> expected = data_of(test.behind(distance));
  check_bytes(expected, test.read(snapshot.data(), bytes), what + ": seen at the signal");
  area.check(expected, what);
}

void put_and_announce(RankTest& test) {
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

struct RoundsArguments {
  const std::byte* source;           ///< [rounds, bytes]
  std::byte* destination;            ///< [bytes]
  std::byte* snapshots;              ///< [rounds, bytes]
  std::uint64_t *signals, *credits;  ///< [groups]
  std::size_t bytes;
  std::uint32_t rounds, to, from;
};

/// Writes the same place again and again: whoever sees a signal must see that round's data, and no later one's.
template <GroupKind kind>
struct RoundsKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, RoundsArguments a) const {
    const auto group = group_of<kind>(grid);
    const GroupPlace place = place_of<kind>(grid);
    const Slice slice(a.bytes, place);
    for (std::uint64_t round = 0; round < a.rounds; ++round) {
      put_signal(group, ctx, a.destination + slice.first, a.source + round * a.bytes + slice.first,
                 slice.last - slice.first, &a.signals[place.index], round + 1, a.to);
      const Status arrived = wait(group, ctx, &a.signals[place.index], Compare::greater_equal, round + 1, a.from);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, arrived);
      copy_slice(group, a.snapshots + round * a.bytes, a.destination, slice);
      signal(group, ctx, &a.credits[place.index], round + 1, a.from);
      const Status credit = wait(group, ctx, &a.credits[place.index], Compare::greater_equal, round + 1, a.to);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, credit);
    }
  }
};

template <GroupKind kind>
void put_rounds_by(RankTest& test, std::uint32_t rounds) {
  World& world = test.world();
  const std::size_t bytes = 1 + test.random().below(std::size_t{6000});
  const SymmetricArray<std::byte> source(world, rounds * bytes), snapshots(world, rounds * bytes);
  const SymmetricArray<std::byte> destination(world, bytes, test.any_heap());
  const SymmetricArray<std::uint64_t> signals(world, most_groups, test.any_heap()),
      credits(world, most_groups, test.any_heap());
  const std::uint64_t key = test.random().next();
  const auto data_of = [&](int rank) { return pattern(key + static_cast<std::uint64_t>(rank), rounds * bytes); };
  test.write(source.data(), data_of(test.rank()));
  world.barrier();
  const RoundsArguments arguments{source.data(),
                                  destination.data(),
                                  snapshots.data(),
                                  signals.data(),
                                  credits.data(),
                                  bytes,
                                  rounds,
                                  static_cast<std::uint32_t>(test.ahead(1)),
                                  static_cast<std::uint32_t>(test.behind(1))};
  const std::string what = join(name(kind), " groups, ", rounds, " rounds of ", bytes, " bytes");
  test.run(test.shape(2, true), RoundsKernel<kind>{}, arguments, what);
  check_bytes(data_of(test.behind(1)), test.read(snapshots.data(), rounds * bytes), what);
}

void put_rounds(RankTest& test) {
  const std::uint32_t rounds = under_thread_sanitizer ? 20 : test.on_gpu() ? 500 : 200;
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
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport*, GetArguments a) const {
    const auto group = group_of<kind>(grid);
    const Slice slice(a.bytes, place_of<kind>(grid));
    get(group, ctx, a.destination + slice.first, a.source + slice.first, slice.last - slice.first, a.peer);
  }
};

template <GroupKind kind>
void get_one(RankTest& test) {
  World& world = test.world();
  Random& random = test.random();
  const std::size_t bytes = random.message_bytes(most_bytes), offset = random.offset(), from_offset = random.offset();
  const int peer = test.ahead(random.below(test.size()));
  const SymmetricArray<std::byte> source(world, bytes + from_offset, test.any_heap());
  const SymmetricArray<std::byte> memory(world, GuardedArea::needed(offset, bytes), test.any_heap());
  const std::uint64_t key = random.next();
  const auto data_of = [&](int rank) { return pattern(key + static_cast<std::uint64_t>(rank), bytes); };
  test.write(source.data() + from_offset, data_of(test.rank()));
  GuardedArea area(test, memory.data(), offset, bytes);
  const std::string what = join(name(kind), " groups, ", bytes, " bytes at offset ", offset, " from offset ",
                                from_offset, " of rank ", peer);
  world.barrier();
  test.run(test.shape(1 + static_cast<unsigned>(random.below(3)), false), GetKernel<kind>{},
           GetArguments{source.data() + from_offset, area.data(), bytes, static_cast<std::uint32_t>(peer)}, what);
  area.check(data_of(peer), what);
  world.barrier();  // nobody reads the source any more
}

void get_slices(RankTest& test) {
  for_each_group_kind(test.world(), [&]<GroupKind kind>() {
    for (int i = 0; i < (under_thread_sanitizer ? 3 : 40); ++i) get_one<kind>(test);
  });
}

/// An element without padding whose size is no power of two.
struct Triple {
  std::uint32_t a, b, c;
};

struct ElementArguments {
  const Triple* source;
  Triple* destination;
  std::uint64_t* signal;
  std::size_t count;
  std::uint32_t to, from;
};

/// Elements instead of bytes, and a get of what has just arrived.
struct ElementKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, ElementArguments a) const {
    const auto& block = grid.block();
    put(block, ctx, a.destination, a.source, a.count, a.to);
    signal(block, ctx, a.signal, 1, a.to);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(block, ctx, a.signal, Compare::equal, 1, a.from));
    signal(block, ctx, a.signal + 1, 1, a.from);  // this rank's destination may be read now
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(block, ctx, a.signal + 1, Compare::equal, 1, a.to));
    get(block, ctx, a.destination + a.count, a.destination, a.count, a.to);
  }
};

void put_and_get_elements(RankTest& test) {
  World& world = test.world();
  const std::size_t count = 1 + test.random().below(std::size_t{3000}), bytes = count * sizeof(Triple);
  const SymmetricArray<Triple> source(world, count), destination(world, 2 * count);
  const SymmetricArray<std::uint64_t> signals(world, 2);
  const std::uint64_t key = test.random().next();
  const auto data_of = [&](int rank) { return pattern(key + static_cast<std::uint64_t>(rank), bytes); };
  test.write(source.data(), data_of(test.rank()));
  world.barrier();
  test.run(test.shape(1, true), ElementKernel{},
           ElementArguments{source.data(), destination.data(), signals.data(), count,
                            static_cast<std::uint32_t>(test.ahead(1)), static_cast<std::uint32_t>(test.behind(1))},
           "elements");
  check_bytes(data_of(test.behind(1)), test.read(destination.data(), bytes), "elements put");
  check_bytes(data_of(test.rank()), test.read(destination.data() + count, bytes),
              "own elements, got back from the peer");
  world.barrier();
}

struct Scalars {
  std::uint64_t eight;
  std::uint32_t four;
  std::uint16_t two;
  std::uint8_t one;
};

struct ScalarArguments {
  Scalars* scalars;
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
                            await_scalar(ctx, &a.scalars->eight, std::uint64_t{0x1122334455667788}, a.from));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, await_scalar(ctx, &a.scalars->four, std::uint32_t{0x99aabbcc}, a.from));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, await_scalar(ctx, &a.scalars->two, std::uint16_t{0xddee}, a.from));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, await_scalar(ctx, &a.scalars->one, std::uint8_t{0xff}, a.from));
  }
};

void put_scalars(RankTest& test) {
  for (const Heap heap : {Heap::symmetric, Heap::pinned}) {
    const SymmetricArray<Scalars> scalars(test.world(), 1, heap);
    test.run(test.shape(1, true), ScalarKernel{},
             ScalarArguments{scalars.data(), static_cast<std::uint32_t>(test.ahead(1)),
                             static_cast<std::uint32_t>(test.behind(1))},
             "scalars");
  }
}

}  // namespace

const std::vector<Case>& put_get_cases() {
  static const std::vector<Case> cases = {{"put_and_announce", 1, put_and_announce},
                                          {"put_rounds", 1, put_rounds},
                                          {"get_slices", 1, get_slices},
                                          {"put_and_get_elements", 1, put_and_get_elements},
                                          {"put_scalars", 1, put_scalars}};
  return cases;
}

}  // namespace beeline_test
