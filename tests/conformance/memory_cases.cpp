// SPDX-License-Identifier: Apache-2.0
// Segments of differing kinds and sizes, symmetric allocations, owners of addresses, plain stores to global addresses.
#include <numeric>

#include "tests/conformance/group_kind.hpp"
#include "tests/conformance/rank_test.hpp"

namespace beeline_test::memory_cases {

namespace {

using namespace beeline;

constexpr MemoryKind kinds[] = {MemoryKind::device, MemoryKind::pinned, MemoryKind::host};

/// A rank's request: ranks ask for different kinds and sizes; one of them (in worlds of three or more) for none.
struct Part {
  MemoryKind kind;
  std::size_t bytes;
};

std::vector<Part> choose_parts(RankTest& test) {
  std::vector<Part> parts;
  for (int rank = 0; rank < test.size(); ++rank)
    parts.push_back({kinds[test.random().below(3)], 1 + test.random().below(std::size_t{300'000})});
  if (test.size() >= 3) parts[static_cast<std::size_t>(test.random().below(test.size()))].bytes = 0;
  return parts;
}

void check_parts(RankTest& test, const Segment& segment, const std::vector<Part>& parts) {
  BEELINE_CHECK_EQ(parts.size(), segment.parts.size());
  for (int rank = 0; rank < test.size(); ++rank) {
    const SegmentPart& part = segment.parts[static_cast<std::size_t>(rank)];
    BEELINE_CHECK_EQ(parts[static_cast<std::size_t>(rank)].bytes, part.bytes);
    BEELINE_CHECK(part.kind == parts[static_cast<std::size_t>(rank)].kind);
    BEELINE_CHECK_EQ(part.bytes == 0, part.address == nullptr);
    if (part.bytes == 0) continue;
    BEELINE_CHECK_EQ(rank, test.world().owner_of(part.address));
    BEELINE_CHECK_EQ(rank, test.world().owner_of(part.address + part.bytes - 1));
  }
}

/// Every rank writes to the next rank's part, reads it back, and finds the data of the rank behind in its own part.
BEELINE_CASE(memory, segments_of_differing_kinds, 1) {
  World& world = test.world();
  std::vector<std::uint32_t> ids;
  for (int round = 0; round < 4; ++round) {
    const std::vector<Part> parts = choose_parts(test);
    const Part& mine = parts[static_cast<std::size_t>(test.rank())];
    const Segment& segment = world.create_segment(mine.kind, mine.bytes);
    ids.push_back(segment.id);
    check_parts(test, segment, parts);
    const std::uint64_t key = test.random().next();
    const auto data_for = [&](int rank) {
      return pattern(key + static_cast<std::uint64_t>(rank), parts[static_cast<std::size_t>(rank)].bytes);
    };
    const SegmentPart &next = segment.parts[static_cast<std::size_t>(test.ahead(1))],
                      &own = segment.parts[static_cast<std::size_t>(test.rank())];
    check_bytes(std::vector<std::byte>(own.bytes), test.read(own.address, own.bytes), "a new segment is zero");
    world.barrier();
    if (next.bytes > 0) test.write(next.address, data_for(test.ahead(1)));
    world.barrier();
    check_bytes(data_for(test.rank()), test.read(own.address, own.bytes), "own part of a segment");
    check_bytes(data_for(test.ahead(1)), test.read(next.address, next.bytes), "the next rank's part");
    world.barrier();
    if (round == 2) {
      world.destroy_segment(ids[1]);
      ids.erase(ids.begin() + 1);
    }
  }
  for (const std::uint32_t id : ids) world.destroy_segment(id);
}

struct StoreArguments {
  std::uint32_t* there;  ///< a global address
  std::size_t count;
  std::uint32_t start;
};

/// Plain stores through the global address of another rank's segment part.
struct StoreKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport*, StoreArguments a) const {
    for (std::size_t i = grid.thread_rank(); i < a.count; i += grid.size())
      a.there[i] = a.start + static_cast<std::uint32_t>(i);
    static_cast<void>(quiet(grid.block(), ctx));
  }
};

/// CPU threads cannot store to GPU memory: a copy takes the place of their stores.
void copy_instead(RankTest& test, const StoreArguments& arguments) {
  std::vector<std::uint32_t> words(arguments.count);
  std::iota(words.begin(), words.end(), arguments.start);
  test.world().copy(arguments.there, words.data(), words.size() * sizeof(std::uint32_t));
}

BEELINE_CASE(pointer, kernels_store_to_global_addresses, 1) {
  World& world = test.world();
  BEELINE_CHECK(world.global_addresses());
  for (const MemoryKind kind : kinds) {
    const std::size_t count = 1 + test.random().below(std::size_t{20'000});
    const Segment& segment = world.create_segment(kind, count * sizeof(std::uint32_t));
    auto* there = reinterpret_cast<std::uint32_t*>(segment.parts[static_cast<std::size_t>(test.ahead(1))].address);
    const StoreArguments arguments{there, count, static_cast<std::uint32_t>(1000 * test.rank())};
    if (!test.on_gpu() && kind == MemoryKind::device && world.device(test.ahead(1)).is_gpu())
      copy_instead(test, arguments);
    else
      test.run(test.shape(2, false), StoreKernel{}, arguments, "stores");
    world.barrier();
    const std::vector<std::byte> seen =
        test.read(segment.parts[static_cast<std::size_t>(test.rank())].address, count * 4);
    const auto* words = reinterpret_cast<const std::uint32_t*>(seen.data());
    for (std::size_t i = 0; i < count; ++i)
      BEELINE_CHECK_EQ(static_cast<std::uint32_t>(1000 * test.behind(1)) + i, words[i]);
    world.destroy_segment(segment.id);
  }
}

BEELINE_CASE(memory, allocations_are_symmetric, 1) {
  World& world = test.world();
  struct Held {
    std::byte* memory;
    std::size_t bytes;
  };
  std::vector<Held> held;
  for (int step = 0; step < 30; ++step) {
    if (!held.empty() && test.random().below(3) == 0) {
      const std::size_t victim = test.random().below(held.size());
      world.free(held[victim].memory);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(victim));
      continue;
    }
    const std::size_t bytes = test.random().message_bytes(200'000);
    auto* memory = static_cast<std::byte*>(world.allocate(bytes, test.any_heap()));
    BEELINE_CHECK_EQ(0u, reinterpret_cast<std::uintptr_t>(memory) % 256);
    check_bytes(std::vector<std::byte>(bytes), test.read(memory, bytes), "new memory is zero");
    for (int peer = 0; peer < test.size(); ++peer) {
      BEELINE_CHECK_EQ(peer, world.owner_of(world.at(memory, peer)));
      const auto here = reinterpret_cast<std::intptr_t>(memory);
      const auto there = reinterpret_cast<std::intptr_t>(world.at(memory, peer));
      BEELINE_CHECK_EQ((peer - test.rank()) * (std::intptr_t{1} << world.config().slot_shift), there - here);
    }
    test.write(memory, std::vector<std::byte>(bytes, std::byte{0xff}));  // the next owner of this memory must see zeros
    held.push_back({memory, bytes});
  }
  for (const Held& each : held) world.free(each.memory);
  int local = 0;
  BEELINE_CHECK_EQ(-1, world.owner_of(&local));
  BEELINE_CHECK_EQ(-1, world.owner_of(nullptr));
}

BEELINE_CASE(memory, symmetric_arrays_move, 1) {
  SymmetricArray<std::uint64_t> first(test.world(), 17);
  const SymmetricArray<std::uint64_t> second(std::move(first));
  BEELINE_CHECK(first.data() == nullptr && first.count() == 0);
  BEELINE_CHECK_EQ(17u, second.count());
  BEELINE_CHECK_EQ(17u * 8, second.bytes());
  BEELINE_CHECK(second.at(test.rank()) == second.data());
}

}  // namespace

}  // namespace beeline_test::memory_cases
