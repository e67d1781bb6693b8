// SPDX-License-Identifier: Apache-2.0
// Staged messages through host memory: one slot after another, pipelined, and in both directions at the same time.
#include <fmt/format.h>

#include "tests/conformance/guarded_area.hpp"
#include "tests/conformance/rank_test.hpp"

namespace beeline_test::staged_cases {

namespace {

using namespace beeline;

struct StagedShape {
  std::size_t chunk_bytes;
  std::uint32_t slots;
};

/// Ranks send messages around a ring: of sizes around the chunk and the ring of slots, and of random sizes.
void exchange_around(RankTest& test, const StagedShape& shape) {
  World& world = test.world();
  StagedChannel channel(world, shape.chunk_bytes, shape.slots);
  const std::size_t ring = shape.chunk_bytes * shape.slots;
  std::vector<std::size_t> sizes = {0,    1,           shape.chunk_bytes - 1, shape.chunk_bytes, shape.chunk_bytes + 1,
                                    ring, 3 * ring + 7};
  for (int i = 0; i < 4; ++i) sizes.push_back(test.random().message_bytes(under_thread_sanitizer ? ring : 8 * ring));
  for (const std::size_t bytes : sizes) {
    const std::size_t offset = test.random().offset(), from_offset = test.random().offset();
    const SymmetricArray<std::byte> source(world, bytes + from_offset, test.any_heap());
    const SymmetricArray<std::byte> memory(world, GuardedArea::needed(offset, bytes), test.any_heap());
    const std::uint64_t key = test.random().next();
    const auto data_of = [&](int rank) { return pattern(key + static_cast<std::uint64_t>(rank), bytes); };
    test.write(source.data() + from_offset, data_of(test.rank()));
    GuardedArea area(test, memory.data(), offset, bytes);
    channel.send_receive(source.data() + from_offset, test.ahead(1), area.data(), test.behind(1), bytes);
    area.check(data_of(test.behind(1)),
               fmt::format("{} bytes in chunks of {} through {} slots", bytes, shape.chunk_bytes, shape.slots));
  }
}

BEELINE_CASE(staged, staged_exchange_sequential, 1) { exchange_around(test, {std::size_t{20'000}, 1}); }

BEELINE_CASE(staged, staged_exchange_pipelined, 1) {
  exchange_around(test, {1, 2});
  exchange_around(test, {std::size_t{4096}, 3});
  exchange_around(test, {std::size_t{100'000}, 4});
}

/// One rank sends to each other rank in turn; on a host rank from memory that the library does not know.
BEELINE_CASE(staged, staged_send_and_receive, 2) {
  World& world = test.world();
  StagedChannel channel(world, 5000, 2);
  const std::size_t bytes = 1 + test.random().below(std::size_t{30'000});
  const SymmetricArray<std::byte> memory(world, bytes);
  const std::uint64_t key = test.random().next();
  for (int sender = 0; sender < test.size(); ++sender) {
    const std::vector<std::byte> data = pattern(key + static_cast<std::uint64_t>(sender), bytes);
    if (sender == test.rank()) {
      for (int peer = 0; peer < test.size(); ++peer)
        if (peer != sender) channel.send(data.data(), bytes, peer);
    } else {
      channel.receive(memory.data(), bytes, sender);
      check_bytes(data, test.read(memory.data(), bytes), fmt::format("staged from rank {}", sender));
    }
  }
  world.barrier();
}

}  // namespace

}  // namespace beeline_test::staged_cases
