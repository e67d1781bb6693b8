// SPDX-License-Identifier: Apache-2.0
// Distributed arrays: owners of chunks on host and device, plain access to all elements, copies over several chunks.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "tests/conformance/rank_test.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::distributed_cases {

namespace {

using namespace beeline;

using Array = DistributedArray<std::uint32_t>;

BEELINE_HOST_DEVICE std::uint32_t value_of(std::size_t index, std::uint32_t round) {
  return static_cast<std::uint32_t>(index) * 7 + round * 1'000'003;
}

/// The distribution that all ranks ask for: equal chunks or cyclic ones, in any kind of memory.
Distribution choose_distribution(RankTest& test, std::size_t count) {
  constexpr MemoryKind kinds[] = {MemoryKind::device, MemoryKind::pinned, MemoryKind::host};
  Distribution distribution;
  distribution.kind = kinds[test.random().below(3)];
  if (test.random().coin()) distribution.chunk_elements = 1 + test.random().below(count);
  return distribution;
}

std::size_t choose_count(RankTest& test) {
  return 1 + test.random().below(std::size_t{under_thread_sanitizer ? 5000u : 60'000u});
}

/// Chunks go to ranks in turn; all functions that return owners agree; `elements_of` covers each element once.
void check_owners(RankTest& test, const Array& array) {
  const std::size_t chunk = array.chunks().chunk_bytes();
  for (std::size_t i = 0; i < array.count(); i += 1 + i / 50) {
    const auto expected = static_cast<int>(i * sizeof(std::uint32_t) / chunk % static_cast<std::size_t>(test.size()));
    BEELINE_CHECK_EQ(expected, array.owner_of(i));
    BEELINE_CHECK_EQ(expected, test.world().owner_of(array.data() + i));
  }
  std::size_t elements = 0;
  for (int rank = 0; rank < test.size(); ++rank)
    for (const ElementRange& range : array.elements_of(rank)) {
      elements += range.last - range.first;
      BEELINE_CHECK_EQ(rank, array.owner_of(range.first));
      BEELINE_CHECK_EQ(rank, array.owner_of(range.last - 1));
    }
  BEELINE_CHECK_EQ(array.count(), elements);
  BEELINE_CHECK_EQ(-1, test.world().owner_of(array.data() + array.count()));
}

struct ArrayArguments {
  DistributedView<std::uint32_t> array;
  AddressMap addresses;
  std::uint32_t round;
  bool in_own_memory;  ///< each chunk is in its owner's kind of memory
};

/// Whether kernels of `from` can load and store the element.
BEELINE_HOST_DEVICE inline bool reaches(const Context& ctx, const ArrayArguments& a, std::uint32_t from,
                                        std::size_t index) {
  return !a.in_own_memory || ctx.kind_of(from) == DeviceKind::gpu ||
         ctx.kind_of(a.array.owner_of(index)) == DeviceKind::host;
}

/// Each rank stores every size-th element, whoever owns it; the owner stores it if that rank cannot reach it.
struct StoreElements {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport*, ArrayArguments a) const {
    for (std::size_t i = grid.thread_rank(); i < a.array.count; i += grid.size()) {
      const auto turn = static_cast<std::uint32_t>(i % ctx.size);
      if (ctx.rank == (reaches(ctx, a, turn, i) ? turn : a.array.owner_of(i))) a.array[i] = value_of(i, a.round);
    }
    static_cast<void>(quiet(grid.block(), ctx));
  }
};

/// Each rank loads every element that it reaches, and computes the owner of each element.
struct CheckElements {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, ArrayArguments a) const {
    const std::size_t chunk = a.array.chunks.chunk_bytes();
    for (std::size_t i = grid.thread_rank(); i < a.array.count; i += grid.size()) {
      if (reaches(ctx, a, ctx.rank, i)) BEELINE_DEVICE_CHECK_EQ(report, value_of(i, a.round), a.array[i]);
      const std::uint64_t owner = i * sizeof(std::uint32_t) / chunk % ctx.size;
      BEELINE_DEVICE_CHECK_EQ(report, owner, a.array.owner_of(i));
      BEELINE_DEVICE_CHECK_EQ(report, owner, a.addresses.owner_of(&a.array[i]));
    }
    BEELINE_DEVICE_CHECK_EQ(report, no_peer, a.addresses.owner_of(a.array.data + a.array.count));
    BEELINE_DEVICE_CHECK_EQ(report, ctx.rank, a.addresses.owner_of(report));
  }
};

BEELINE_CASE(pointer, elements_by_plain_pointer, 1) {
  World& world = test.world();
  for (std::uint32_t round = 0; round < 4; ++round) {
    const std::size_t count = choose_count(test);
    const Distribution distribution = choose_distribution(test, count);
    const Array array(world, count, distribution);
    check_owners(test, array);
    for (const ElementRange& range : array.elements_of(test.rank()))
      check_bytes(std::vector<std::byte>((range.last - range.first) * sizeof(std::uint32_t)),
                  test.read(array.data() + range.first, (range.last - range.first) * sizeof(std::uint32_t)),
                  "a new array is zero");
    world.barrier();
    const ArrayArguments arguments{array.view(), world.address_map(), round, distribution.kind == MemoryKind::device};
    test.run(test.shape(3, false), StoreElements{}, arguments, "stores into an array");
    world.barrier();
    test.run(test.shape(3, false), CheckElements{}, arguments, "loads from an array");
    world.barrier();
  }
}

/// A copy may cover many chunks, at the destination or at the source.
BEELINE_CASE(distributed, copies_across_chunks, 1) {
  World& world = test.world();
  for (std::uint32_t round = 0; round < 3; ++round) {
    const std::size_t count = choose_count(test);
    const Array array(world, count, choose_distribution(test, count));
    std::vector<std::uint32_t> data(count), seen(count);
    for (std::size_t i = 0; i < count; ++i) data[i] = value_of(i, round);
    const int writer = test.random().below(test.size());
    const bool asynchronous = test.random().coin();
    if (test.rank() == writer) world.copy(array.data(), data.data(), array.bytes());
    world.barrier();
    if (asynchronous) {
      world.copy(seen.data(), array.data(), array.bytes(), world.stream());
      world.synchronize();
    } else {
      world.copy(seen.data(), array.data(), array.bytes());
    }
    BEELINE_CHECK(data == seen);
    world.barrier();
  }
}

/// Addresses are used again; an address in freed memory has no owner.
BEELINE_CASE(distributed, arrays_come_and_go, 1) {
  World& world = test.world();
  std::vector<std::unique_ptr<Array>> arrays;
  const std::uint32_t* gone = nullptr;
  for (int step = 0; step < 12; ++step) {
    if (arrays.size() > 2 || (!arrays.empty() && test.random().coin())) {
      const auto victim = static_cast<std::ptrdiff_t>(test.random().below(arrays.size()));
      gone = arrays[static_cast<std::size_t>(victim)]->data();
      arrays.erase(arrays.begin() + victim);
      BEELINE_CHECK_EQ(-1, world.owner_of(gone));
    } else {
      const std::size_t count = choose_count(test);
      arrays.push_back(std::make_unique<Array>(world, count, choose_distribution(test, count)));
    }
    for (const auto& array : arrays) check_owners(test, *array);
  }
  Array first(world, 100);
  const Array second(std::move(first));
  BEELINE_CHECK_EQ(0u, first.count());
  BEELINE_CHECK_EQ(100u, second.count());
}

/// Elements whose size divides no page, so that an element may lie in two chunks.
BEELINE_CASE(distributed, elements_of_odd_size, 1) {
  struct Odd {
    std::uint8_t bytes[12];
  };
  World& world = test.world();
  const DistributedArray<Odd> array(world, 3000, {.chunk_elements = 400, .kind = MemoryKind::host});
  std::size_t next = 0;
  for (std::size_t start = 0, chunk = 0; start < array.bytes(); start += array.chunks().chunk_bytes(), ++chunk)
    BEELINE_CHECK_EQ(static_cast<int>(chunk % static_cast<std::size_t>(test.size())),
                     world.owner_of(reinterpret_cast<std::byte*>(array.data()) + start));
  for (int rank = 0; rank < test.size(); ++rank)
    for (const ElementRange& range : array.elements_of(rank)) next += range.last - range.first;
  BEELINE_CHECK_EQ(3000u, next);
  const auto is_on_node = [&](std::size_t i) {  // an element may have two owners
    const auto* const first = reinterpret_cast<const std::byte*>(array.data() + i);
    return world.node(world.owner_of(first)) == world.node(test.rank()) &&
           world.node(world.owner_of(first + sizeof(Odd) - 1)) == world.node(test.rank());
  };
  std::vector<Odd> data(array.count());
  for (std::size_t i = 0; i < array.count(); ++i) std::fill_n(data[i].bytes, sizeof(Odd), static_cast<std::uint8_t>(i));
  if (test.rank() == 0) {
    if (world.node(test.size() - 1) != 0) world.copy(array.data(), data.data(), array.bytes());
    for (std::size_t i = 0; i < array.count(); ++i)
      if (is_on_node(i)) array[i] = data[i];
  }
  world.barrier();
  for (const std::size_t i : {std::size_t{0}, std::size_t{341}, std::size_t{1365}, std::size_t{2999}}) {
    Odd element;
    world.copy(&element, array.data() + i, sizeof element);
    BEELINE_CHECK(std::ranges::equal(element.bytes, data[i].bytes));
    if (is_on_node(i))
      BEELINE_CHECK_EQ(element.bytes[11], array[i].bytes[11]);
    else
      check_error(Status::unreachable, {"loads and stores do not reach byte", "is on node"},
                  [&] { static_cast<void>(array[i]); });
  }
  world.barrier();
}

}  // namespace

}  // namespace beeline_test::distributed_cases
