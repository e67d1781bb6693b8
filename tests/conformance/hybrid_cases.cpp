// SPDX-License-Identifier: Apache-2.0
// Hybrid transfers: direct and staged, blocking and on streams, of one thread and of several.
#include <fmt/format.h>

#include <string>
#include <thread>

#include "tests/conformance/guarded_area.hpp"
#include "tests/conformance/rank_test.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::hybrid_cases {

namespace {

using namespace beeline;

constexpr HybridOptions shapes[] = {{1, 1, 1}, {1, 4099, 1}, {5000, 4096, 3}, {1, 100'000, 4}, {0, 300'000, 2}};

/// Sizes at which the number of chunks changes, and random sizes.
std::vector<std::size_t> sizes_for(const HybridOptions& shape, Random& random) {
  const std::size_t chunk = shape.chunk_bytes, ring = chunk * shape.chunks;
  std::vector<std::size_t> sizes = {0, 1, chunk, chunk + 1, ring, 2 * ring + 7, shape.threshold_bytes};
  sizes.push_back(random.message_bytes(under_thread_sanitizer ? ring : 4 * ring));
  return sizes;
}

/// Puts on a stream, then sets a signal on it: the signal must arrive after the data.
void put_by_stream(RankTest& test, HybridTransfers& hybrid, std::byte* to, const std::byte* from, std::size_t bytes,
                   SymmetricArray<std::uint64_t>& arrived, std::uint64_t round) {
  World& world = test.world();
  hybrid.put_on_stream(to, from, bytes, test.ahead(1));
  signal_on_stream(world, test.ahead(1), {.signal = arrived.data(), .value = round});
  wait_on_stream(world, {.signal = arrived.data(), .value = round, .peer = static_cast<std::uint32_t>(test.behind(1))});
  world.synchronize();
}

BEELINE_CASE(stream, hybrid_puts, 1) {
  World& world = test.world();
  Random& random = test.random();
  SymmetricArray<std::uint64_t> arrived(world, 1, Heap::pinned);
  std::uint64_t round = 0;
  for (const HybridOptions& shape : shapes) {
    HybridTransfers hybrid(world, shape);
    for (const std::size_t bytes : sizes_for(shape, random)) {
      const std::size_t offset = random.offset(), from_offset = random.offset();
      const SymmetricArray<std::byte> source(world, bytes + from_offset, test.any_heap());
      const SymmetricArray<std::byte> memory(world, GuardedArea::needed(offset, bytes), test.any_heap());
      const std::uint64_t key = random.next();
      const auto data_of = [&](int rank) { return pattern(key + static_cast<std::uint64_t>(rank), bytes); };
      test.write(source.data() + from_offset, data_of(test.rank()));
      GuardedArea area(test, memory.data(), offset, bytes);
      const bool by_stream = random.coin();
      world.barrier();
      if (by_stream)
        put_by_stream(test, hybrid, area.data(), source.data() + from_offset, bytes, arrived, ++round);
      else
        hybrid.put(area.data(), source.data() + from_offset, bytes, test.ahead(1));
      world.barrier();
      area.check(data_of(test.behind(1)), fmt::format("{} bytes {}: threshold {}, {} chunks of {}", bytes,
                                                      by_stream ? "by a stream" : "blocking", shape.threshold_bytes,
                                                      shape.chunks, shape.chunk_bytes));
    }
  }
}

/// Copies to a peer and back, from and to ordinary host memory. A get from a peer on another node goes directly.
BEELINE_CASE(stream, hybrid_copies, 1) {
  World& world = test.world();
  constexpr std::size_t bytes = 90'001;
  HybridTransfers hybrid(world, {.threshold_bytes = 1, .chunk_bytes = 20'000, .chunks = 2});
  const SymmetricArray<std::byte> memory(world, bytes, test.any_heap());
  const std::uint64_t key = test.random().next() + static_cast<std::uint64_t>(test.rank());
  const std::vector<std::byte> mine = pattern(key, bytes);
  std::vector<std::byte> back(bytes);
  world.barrier();
  hybrid.copy(memory.at(test.ahead(1)), mine.data(), bytes);
  hybrid.copy(back.data(), memory.at(test.ahead(1)), bytes);
  check_bytes(mine, back, "there and back");
  BEELINE_CHECK(hybrid.is_staged(memory.at(test.ahead(1)), mine.data(), bytes));
  BEELINE_CHECK(!hybrid.is_staged(memory.at(test.ahead(1)), mine.data(), 1));
  world.barrier();
}

/// Threads share an object, each with a part of the peer's memory; the options change meanwhile.
BEELINE_CASE(stream, hybrid_threads, 1) {
  World& world = test.world();
  constexpr std::size_t threads = 4, bytes = 30'011;
  constexpr int rounds = under_thread_sanitizer ? 3 : 10;
  HybridTransfers hybrid(world, {.threshold_bytes = 1, .chunk_bytes = 8192, .chunks = 3});
  const SymmetricArray<std::byte> memory(world, threads * bytes);
  const std::uint64_t key = test.random().next();
  const auto key_of = [key](int rank, std::size_t thread) {
    return key + static_cast<std::uint64_t>(rank) * threads + thread;
  };
  std::string failures[threads];
  std::vector<std::thread> all;
  world.barrier();
  for (std::size_t number = 0; number < threads; ++number)
    all.emplace_back([&, number] {
      try {
        const std::vector<std::byte> mine = pattern(key_of(test.rank(), number), bytes);
        const auto stream = world.make_stream();
        for (int round = 0; round < rounds; ++round) {
          std::byte* const to = memory.data() + number * bytes;
          hybrid.set({.chunk_bytes = number % 2 == 0 ? std::size_t{8192} : std::size_t{5000}});
          if (round % 2 == 0) {
            hybrid.put(to, mine.data(), bytes, test.ahead(1));
          } else {
            hybrid.put_on_stream(to, mine.data(), bytes, test.ahead(1), stream.get());
            world.synchronize(*stream);
          }
        }
      } catch (const std::exception& error) {
        failures[number] = error.what();
      }
    });
  for (std::thread& each : all) each.join();
  for (const std::string& failure : failures) BEELINE_CHECK_EQ(std::string(), failure);
  world.barrier();
  for (std::size_t number = 0; number < threads; ++number)
    check_bytes(pattern(key_of(test.behind(1), number), bytes), test.read(memory.data() + number * bytes, bytes),
                fmt::format("part {}", number));
  world.barrier();
}

}  // namespace

}  // namespace beeline_test::hybrid_cases
