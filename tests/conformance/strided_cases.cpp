// SPDX-License-Identifier: Apache-2.0
// Strided put and get: random shapes, by every group, with several element types; gaps and surroundings stay unchanged.
#include <memory>

#include "tests/conformance/group_kind.hpp"
#include "tests/conformance/guarded_area.hpp"
#include "tests/conformance/reachable_array.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::strided_cases {

namespace {

using namespace beeline;

/// An element without padding whose size is no power of two.
struct Triple {
  std::uint32_t a, b, c;
};

template <class T>
struct StridedArguments {
  const T *source, *source_ahead;  ///< source of the put; source of the get
  T *destination, *got;            ///< at the rank ahead; on this rank
  std::uint64_t* signal;           ///< set at the rank ahead
  const std::uint64_t* arrived;    ///< set on this rank
  StridedShape put, get;
  std::uint32_t to, from;
};

/// Puts blocks to the rank ahead, and gets other blocks from it.
template <GroupKind kind, class T>
struct StridedKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report,
                                      StridedArguments<T> a) const {
    const auto group = group_of<kind>(grid);
    if (place_of<kind>(grid).index != 0) return;
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, put_strided(group, ctx, a.destination, a.source, a.put, a.to));
    signal(group, ctx, a.signal, 1, a.to);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, get_strided(group, ctx, a.got, a.source_ahead, a.get, a.to));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(group, ctx, a.arrived, Compare::equal, 1, a.from));
  }
};

/// A count of zero, one, some or many.
std::size_t any_count(Random& random, std::size_t most) {
  const std::size_t edges[] = {0, 1, 2, 3};
  return random.below(3) == 0 ? edges[random.below(std::size(edges))] : random.below(most) + 1;
}

/// Blocks that touch or have short or long gaps between them; blocks of the source may also overlap.
StridedShape any_shape(Random& random) {
  const bool long_blocks = random.below(4) == 0;
  StridedShape shape{any_count(random, long_blocks ? 6 : 300), any_count(random, long_blocks ? 5000 : 40), 0, 0};
  const auto gap = [&] { return random.coin() ? random.below(std::size_t{3}) : random.below(std::size_t{70}); };
  // Multiples of 4 elements, so that all word sizes occur.
  const std::size_t grain = random.coin() ? 4 : 1;
  shape.block_length *= grain;
  shape.destination_stride = shape.block_length + grain * gap();
  shape.source_stride = random.below(5) == 0 ? grain * gap() : shape.block_length + grain * gap();
  return shape;
}

std::size_t extent(const StridedShape& shape, std::size_t stride) {
  if (shape.count == 0 || shape.block_length == 0) return 0;
  return (shape.count - 1) * stride + shape.block_length;
}

/// The expected contents of the destination: the blocks of `source`, with guards between them.
std::vector<std::byte> expected_image(const std::vector<std::byte>& source, const StridedShape& shape,
                                      std::size_t element_bytes) {
  std::vector<std::byte> image(extent(shape, shape.destination_stride) * element_bytes, guard_value);
  for (std::size_t i = 0; i < shape.count && !image.empty(); ++i)
    std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(i * shape.source_stride * element_bytes),
                shape.block_length * element_bytes,
                image.begin() + static_cast<std::ptrdiff_t>(i * shape.destination_stride * element_bytes));
  return image;
}

std::string describe(const StridedShape& shape) {
  return join(shape.count, " blocks of ", shape.block_length, ", strides ", shape.destination_stride, " from ",
              shape.source_stride);
}

template <GroupKind kind, class T>
void transfer_one(RankTest& test) {
  World& world = test.world();
  Random& random = test.random();
  const StridedShape put = any_shape(random), get = any_shape(random);
  const auto offset_of = [&] { return random.offset() / 16 * alignof(T); };
  const std::size_t source_offset = offset_of(), put_offset = offset_of(), get_offset = offset_of();
  const std::size_t bytes = sizeof(T) * std::max(extent(put, put.source_stride), extent(get, get.source_stride));
  const std::size_t put_bytes = sizeof(T) * extent(put, put.destination_stride);
  const std::size_t get_bytes = sizeof(T) * extent(get, get.destination_stride);
  const int distance = random.below(test.size()), to = test.ahead(distance), from = test.behind(distance);
  const ReachableArray<std::byte> source(test, source_offset + bytes + 1, test.any_heap());
  const ReachableArray<std::byte> put_memory(test, GuardedArea::needed(put_offset, put_bytes), test.any_heap());
  const SymmetricArray<std::byte> get_memory(world, GuardedArea::needed(get_offset, get_bytes), test.any_heap());
  const ReachableArray<std::uint64_t> signal(test, 1);
  const std::uint64_t key = random.next();
  const auto data_of = [&](int rank) { return pattern(key + static_cast<std::uint64_t>(rank), bytes); };
  std::byte* const own_source = source.used_by(from) + source_offset;
  test.write(own_source, data_of(test.rank()));
  GuardedArea put_area(test, put_memory.used_by(from), put_offset, put_bytes);
  GuardedArea get_area(test, get_memory.data(), get_offset, get_bytes);
  const std::string what = join(name(kind), ", elements of ", sizeof(T), " bytes, put ", describe(put), ", got ",
                                describe(get), ", distance ", distance);
  world.barrier();
  test.run(test.shape(1, true), StridedKernel<kind, T>{},
           StridedArguments<T>{reinterpret_cast<const T*>(own_source),
                               reinterpret_cast<const T*>(source.at(to) + source_offset),
                               reinterpret_cast<T*>(put_memory.at(to) + guard_bytes + put_offset),
                               reinterpret_cast<T*>(get_area.data()), signal.at(to), signal.used_by(from), put, get,
                               static_cast<std::uint32_t>(to), static_cast<std::uint32_t>(from)},
           what);
  put_area.check(expected_image(data_of(from), put, sizeof(T)), what + ": put");
  get_area.check(expected_image(data_of(to), get, sizeof(T)), what + ": got");
  world.barrier();  // no rank reads the source any more
}

template <GroupKind kind, class T>
void transfer(RankTest& test) {
  const int repeats = under_thread_sanitizer ? 4 : test.world().mixed() ? 10 : 25;
  for (int i = 0; i < repeats; ++i) transfer_one<kind, T>(test);
}

BEELINE_CASE(strided, strided_put_and_get, 1) {
  for_each_group_kind(test.world(), [&]<GroupKind kind>() { transfer<kind, std::uint16_t>(test); });
  transfer<GroupKind::block, std::byte>(test);
  transfer<GroupKind::block, std::uint64_t>(test);
  transfer<GroupKind::block, Triple>(test);
}

/// Shapes that every build refuses, or else shapes with nothing to move, whatever their strides.
struct ShapesKernel {
  bool is_bad;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report,
                                      std::uint64_t* memory) const {
    constexpr std::size_t huge = ~std::size_t{0};
    const StridedShape bad[] = {{2, 4, 3, 4},          {2, 1, 0, 1},       {huge, 1, 2, 1}, {1, huge / 8 + 1, 0, 0},
                                {huge / 16, 2, 2, 17}, {2, 2, huge / 8, 2}};
    const StridedShape empty[] = {{0, huge, huge, huge}, {huge, 0, 0, huge}};
    for (const StridedShape& shape : bad)
      if (is_bad) transfer(grid.block(), ctx, report, memory, {shape, ctx.rank, Status::invalid_argument});
    for (const std::uint32_t peer : {ctx.size, no_peer})
      if (is_bad) transfer(grid.block(), ctx, report, memory, {{2, 2, 3, 3}, peer, Status::invalid_argument});
    for (const StridedShape& shape : empty)
      if (!is_bad) transfer(grid.block(), ctx, report, memory, {shape, ctx.rank, Status::ok});
  }

 private:
  struct Expected {
    StridedShape shape;
    std::uint32_t peer;
    Status status;
  };

  template <class Block>
  BEELINE_HOST_DEVICE void transfer(const Block& block, const Context& ctx, DeviceReport* report, std::uint64_t* memory,
                                    const Expected& e) const {
    BEELINE_DEVICE_CHECK_EQ(report, e.status, put_strided(block, ctx, memory, memory + 64, e.shape, e.peer));
    BEELINE_DEVICE_CHECK_EQ(report, e.status, get_strided(block, ctx, memory, memory + 64, e.shape, e.peer));
  }
};

/// The refusals abort a team, which is each rank's own and records them; the world continues.
BEELINE_CASE(strided, strided_bad_arguments, 1) {
  constexpr std::size_t words = 128;
  World& world = test.world();
  const SymmetricArray<std::uint64_t> memory(world, words);
  const std::vector<std::byte> before = pattern(test.random().next(), memory.bytes());
  test.write(memory.data(), before);
  test.run(test.shape(1, false), ShapesKernel{false}, memory.data(), "shapes without elements");
  const std::unique_ptr<Team> alone = world.make_team({test.rank()});
  const auto refused = [&] {
    test.run(*alone, test.shape(1, false), ShapesKernel{true}, memory.data(), "refused shapes");
  };
  if (test.on_gpu() && BEELINE_CHECKS_CALLS == 0)
    refused();
  else
    check_error(
        Status::invalid_argument,
        {"put in kernel", "ShapesKernel refused: blocks of 4 elements overlap in the destination, where they are 3"},
        refused);
  test.check_report("refused shapes");
  check_bytes(before, test.read(memory.data(), memory.bytes()), "memory after refused transfers");
  BEELINE_CHECK(!world.failed());
}

}  // namespace

}  // namespace beeline_test::strided_cases
