// SPDX-License-Identifier: Apache-2.0
// Bulk transfers: any size and alignment, many rounds through the ring of stages, one port for many transfers, and
// signals that never overtake data.
#include "tests/conformance/guarded_area.hpp"
#include "tests/conformance/reachable_array.hpp"

namespace beeline_test::bulk_cases {

namespace {

using namespace beeline;

constexpr std::size_t most_blocks = 4;

/// This block's part of `bytes`.
struct Slice {
  template <class Grid>
  BEELINE_HOST_DEVICE Slice(std::size_t bytes, const Grid& grid)
      : first(bytes * grid.block_rank() / grid.blocks()), last(bytes * (grid.block_rank() + 1) / grid.blocks()) {}
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t bytes() const { return last - first; }
  std::size_t first, last;
};

template <class Block>
BEELINE_HOST_DEVICE void copy_slice(const Block& block, std::byte* to, const std::byte* from, Slice slice) {
  for (std::size_t i = slice.first + block.thread_rank(); i < slice.last; i += block.size()) to[i] = from[i];
}

/// Skips the case if some rank's device cannot run the kernel.
template <class Kernel, class Arguments>
void need_room_for(RankTest& test) {
  const bool fits = resident_blocks<Kernel, DeviceReport*, Arguments>(test.world(), 1) > 0;
  test.skip_if_any(fits ? std::string()
                        : join("the GPU of rank ", test.rank(), " has less than ", sizeof(BulkBuffer),
                               " bytes of shared memory for a block"));
}

struct BulkArguments {
  std::byte *source, *destination;
  const std::byte* arrived;          ///< on this rank, written by the rank behind
  std::byte *snapshot, *got;         ///< copied by the receiver after the signal; fetched back by the sender
  std::uint64_t *signals, *answers;  ///< [blocks] set at the rank ahead, and at the rank behind
  const std::uint64_t *arrivals, *answers_from_ahead;  ///< [blocks] set on this rank
  std::uint64_t value;
  std::size_t bytes;
  std::uint32_t to, from;
};

/// Puts data that this kernel has just written, and gets it back after its arrival was acknowledged.
struct BulkKernel {
  static constexpr std::size_t shared_bytes = sizeof(BulkBuffer);
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, BulkArguments a) const {
    const auto& block = grid.block();
    const Slice slice(a.bytes, grid);
    const unsigned index = grid.block_rank();
    BulkPort port(block, ctx, bulk_buffer());
    for (std::size_t i = slice.first + block.thread_rank(); i < slice.last; i += block.size())
      a.source[i] = ~a.source[i];
    block.sync();
    port.put_signal(a.destination + slice.first, a.source + slice.first, slice.bytes(), &a.signals[index], a.value,
                    a.to);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(block, ctx, &a.arrivals[index], Compare::equal, a.value, a.from));
    copy_slice(block, a.snapshot, a.arrived, slice);
    signal(block, ctx, &a.answers[index], a.value, a.from);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                            wait(block, ctx, &a.answers_from_ahead[index], Compare::equal, a.value, a.to));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                            port.get(a.got + slice.first, a.destination + slice.first, slice.bytes(), a.to));
  }
};

/// Sizes around the capacity of the stages, and any others.
std::size_t bulk_bytes(Random& random) {
  constexpr std::size_t ring = std::size_t{bulk_stages} * bulk_stage_bytes;
  const std::size_t edges[] = {bulk_stage_bytes, 2 * bulk_stage_bytes, ring - 16, ring, ring + 16, 2 * ring};
  if (random.coin()) return random.message_bytes(most_bytes);
  return std::min(most_bytes, edges[random.below(std::size(edges))] + random.below(std::size_t{3}));
}

void put_and_get_one(RankTest& test) {
  World& world = test.world();
  Random& random = test.random();
  const std::size_t bytes = bulk_bytes(random), offset = random.offset();
  // Most often equal modulo 16, as the bulk path needs it.
  const std::size_t from_offset = random.below(4) == 0 ? random.offset() : offset % 16 + 16 * random.below(9);
  const std::size_t got_offset = random.below(4) == 0 ? random.offset() : offset;
  const int distance = random.below(test.size()), to = test.ahead(distance), from = test.behind(distance);
  const SymmetricArray<std::byte> source(world, bytes + from_offset), snapshot(world, bytes);
  const ReachableArray<std::byte> memory(test, GuardedArea::needed(offset, bytes));
  const SymmetricArray<std::byte> got_memory(world, GuardedArea::needed(got_offset, bytes));
  const ReachableArray<std::uint64_t> signals(test, most_blocks), answers(test, most_blocks);
  const std::uint64_t key = random.next();
  const auto data_of = [&](int rank) { return pattern(key + static_cast<std::uint64_t>(rank), bytes); };
  std::vector<std::byte> inverted = data_of(test.rank());
  for (std::byte& byte : inverted) byte = ~byte;
  test.write(source.data() + from_offset, inverted);
  GuardedArea area(test, memory.used_by(from), offset, bytes), got(test, got_memory.data(), got_offset, bytes);
  const std::string what = join(bytes, " bytes at offset ", offset, " from offset ", from_offset, ", got at offset ",
                                got_offset, ", distance ", distance);
  const unsigned blocks = 1 + static_cast<unsigned>(random.below(3));
  world.barrier();
  test.run(
      test.shape(blocks, true), BulkKernel{},
      BulkArguments{source.data() + from_offset, memory.at(to) + guard_bytes + offset, area.data(), snapshot.data(),
                    got.data(), signals.at(to), answers.at(from), signals.used_by(from), answers.used_by(to),
                    random.next() | 1u, bytes, static_cast<std::uint32_t>(to), static_cast<std::uint32_t>(from)},
      what);
  const std::vector<std::byte> expected = data_of(from);
  check_bytes(expected, test.read(snapshot.data(), bytes), what + ": seen at the signal");
  area.check(expected, what);
  got.check(data_of(test.rank()), what + ": got back");
  world.barrier();  // no rank reads the destination any more
}

BEELINE_CASE(bulk, bulk_put_and_get, 1) {
  need_room_for<BulkKernel, BulkArguments>(test);
  for (int i = 0; i < (under_thread_sanitizer ? 4 : 40); ++i) put_and_get_one(test);
}

struct RoundsArguments {
  const std::byte* source;                             ///< [rounds, bytes]
  std::byte* destination;                              ///< [bytes] ahead
  const std::byte* arrived;                            ///< [bytes] here
  std::byte* snapshots;                                ///< [rounds, bytes]
  std::uint64_t *signals, *credits;                    ///< [blocks] set at the rank ahead, and at the rank behind
  const std::uint64_t *arrivals, *credits_from_ahead;  ///< [blocks] set on this rank
  std::size_t bytes;
  std::uint32_t rounds, to, from;
};

/// Writes the same memory in each round through one port: a receiver that sees a signal sees that round's data, and no
/// later round's.
struct BulkRoundsKernel {
  static constexpr std::size_t shared_bytes = sizeof(BulkBuffer);
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, RoundsArguments a) const {
    const auto& block = grid.block();
    const Slice slice(a.bytes, grid);
    const unsigned index = grid.block_rank();
    BulkPort port(block, ctx, bulk_buffer());
    for (std::uint64_t round = 0; round < a.rounds; ++round) {
      port.put_signal(a.destination + slice.first, a.source + round * a.bytes + slice.first, slice.bytes(),
                      &a.signals[index], round + 1, a.to);
      const Status arrived = wait(block, ctx, &a.arrivals[index], Compare::greater_equal, round + 1, a.from);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, arrived);
      copy_slice(block, a.snapshots + round * a.bytes, a.arrived, slice);
      signal(block, ctx, &a.credits[index], round + 1, a.from);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                              wait(block, ctx, &a.credits_from_ahead[index], Compare::greater_equal, round + 1, a.to));
    }
  }
};

BEELINE_CASE(bulk, bulk_rounds, 1) {
  need_room_for<BulkRoundsKernel, RoundsArguments>(test);
  World& world = test.world();
  const std::uint32_t rounds = under_thread_sanitizer ? 10 : 100;
  // Few and many pieces a round, so that rounds begin at every stage and parity.
  const std::size_t bytes = 16 * (1 + test.random().below(std::size_t{10000}));
  const SymmetricArray<std::byte> source(world, rounds * bytes), snapshots(world, rounds * bytes);
  const ReachableArray<std::byte> destination(test, bytes);
  const ReachableArray<std::uint64_t> signals(test, most_blocks), credits(test, most_blocks);
  const int to = test.ahead(1), from = test.behind(1);
  const std::uint64_t key = test.random().next();
  const auto data_of = [&](int rank) { return pattern(key + static_cast<std::uint64_t>(rank), rounds * bytes); };
  test.write(source.data(), data_of(test.rank()));
  world.barrier();
  const std::string what = join(rounds, " rounds of ", bytes, " bytes");
  test.run(test.shape(2, true), BulkRoundsKernel{},
           RoundsArguments{source.data(), destination.at(to), destination.used_by(from), snapshots.data(),
                           signals.at(to), credits.at(from), signals.used_by(from), credits.used_by(to), bytes, rounds,
                           static_cast<std::uint32_t>(to), static_cast<std::uint32_t>(from)},
           what);
  check_bytes(data_of(from), test.read(snapshots.data(), rounds * bytes), what);
}

}  // namespace

}  // namespace beeline_test::bulk_cases
