// SPDX-License-Identifier: Apache-2.0
// Collectives in kernels by whole grids: each block has a session, and works on a slice of every call.
#include "beeline/collectives/allreduce.hpp"
#include "beeline/collectives/barrier.hpp"
#include "beeline/collectives/movement.hpp"
#include "beeline/collectives/reduce.hpp"
#include "tests/conformance/collective_calls.hpp"
#include "tests/conformance/rank_test.hpp"
#include "tests/conformance/suite.hpp"

namespace beeline_test::grid_session_cases {

namespace {

using namespace beeline;

struct GridArguments {
  CollectiveChannel channel;
  std::int32_t *in, *out;  ///< [members, count]
  std::uint32_t count, root;
  std::size_t* lengths;  ///< [2, members] counts and offsets of an all-to-all-v
};

/// Element `i` of part `part` of member `from`'s vector.
BEELINE_HOST_DEVICE std::int32_t element(std::uint32_t from, std::uint32_t part, std::uint32_t i) {
  return static_cast<std::int32_t>(from * 10000 + part * 1000 + i);
}

/// With more blocks than the channel has sessions, every call is refused, and no memory is touched. One kernel tests
/// both, because it takes long to compile.
struct GridSessionKernel {
  static constexpr unsigned max_threads = 128;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, GridArguments a) const {
    Session session(grid, ctx, a.channel);
    for (auto k = static_cast<std::uint32_t>(Operation::barrier); k < operations; ++k) {
      const auto operation = static_cast<Operation>(k);
      fill(grid, ctx, a);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, grid.sync(ctx));
      const bool exists = grid.blocks() <= a.channel.sessions;
      BEELINE_DEVICE_CHECK_EQ(report, exists ? Status::ok : Status::invalid_argument, call(session, operation, a));
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, grid.sync(ctx));
      check(grid, ctx, report, exists ? operation : Operation::none, a);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, grid.sync(ctx));
    }
  }

  template <class Group>
  BEELINE_HOST_DEVICE static Status call(Session<Group>& session, Operation operation, const GridArguments& a) {
    const std::int32_t* const in = a.in;
    switch (operation) {
      case Operation::broadcast:
        return broadcast(session, a.out, in, a.count, a.root);
      case Operation::scatter:
        return scatter(session, a.out, in, a.count, a.root);
      case Operation::gather:
        return gather(session, a.out, in, a.count, a.root);
      case Operation::allgather:
        return allgather(session, a.out, in, a.count);
      case Operation::reduce:
        return reduce(session, a.out, in, a.count, Reduction::sum, a.root);
      case Operation::allreduce:
        return allreduce(session, a.out, in, a.count, Reduction::sum);
      case Operation::reduce_scatter:
        return reduce_scatter(session, a.out, in, a.count, Reduction::sum);
      case Operation::alltoall:
        return alltoall(session, a.out, in, a.count);
      case Operation::alltoallv: {
        std::size_t* const offsets = a.lengths + session.context().size;
        return alltoallv(session, a.out, in, PieceTable{a.lengths, offsets, a.lengths, offsets});
      }
      case Operation::barrier:
        return barrier(session);
      default:
        return move_elements(session, operation, a.out, in, a.count, {}, a.root);
    }
  }

 private:
  template <class Grid>
  BEELINE_HOST_DEVICE static void fill(const Grid& grid, const Context& ctx, const GridArguments& a) {
    for (std::uint32_t i = grid.thread_rank(); i < ctx.size * a.count; i += grid.size()) {
      a.in[i] = element(ctx.rank, i / a.count, i % a.count);
      a.out[i] = -1;
    }
    for (std::uint32_t peer = grid.thread_rank(); peer < ctx.size; peer += grid.size())
      a.lengths[peer] = a.count, a.lengths[ctx.size + peer] = std::size_t{peer} * a.count;
  }

  /// The value expected in element `i` of part `part`; -1: nothing is written there.
  BEELINE_HOST_DEVICE static std::int32_t expected(const Context& ctx, Operation operation, const GridArguments& a,
                                                   std::uint32_t part, std::uint32_t i) {
    constexpr Operations reduce = operations_where([](const CollectiveShape& shape) { return shape.reduces; });
    const bool collects = contains(detail::piecewise_receives, operation);
    if (operation < Operation::broadcast || (contains(detail::receives_of_root, operation) && ctx.rank != a.root))
      return -1;
    if (part != 0 && !collects) return -1;
    const std::uint32_t own = contains(detail::piecewise_sends, operation) ? ctx.rank : 0;
    if (!contains(reduce, operation)) return element(collects ? part : a.root, own, i);
    std::int32_t sum = 0;
    for (std::uint32_t from = 0; from < ctx.size; ++from) sum += element(from, own, i);
    return sum;
  }

  template <class Grid>
  BEELINE_HOST_DEVICE static void check(const Grid& grid, const Context& ctx, DeviceReport* report, Operation operation,
                                        const GridArguments& a) {
    for (std::uint32_t i = grid.thread_rank(); i < ctx.size * a.count; i += grid.size())
      BEELINE_DEVICE_CHECK_EQ(report, expected(ctx, operation, a, i / a.count, i % a.count), a.out[i]);
  }
};

struct GridVectors {
  GridVectors(RankTest& test, std::uint32_t count)
      : in(test.world(), static_cast<std::size_t>(test.size()) * count), out(test.world(), in.count()),
        lengths(test.world(), 2 * static_cast<std::size_t>(test.size())) {}
  [[nodiscard]] GridArguments arguments(const Collectives& collectives, std::uint32_t count, std::uint32_t root) const {
    return {collectives.channel(), in.data(), out.data(), count, root, lengths.data()};
  }
  SymmetricArray<std::int32_t> in, out;
  SymmetricArray<std::size_t> lengths;
};

BEELINE_CASE(sessions_across_nodes, collectives_by_grids, 1) {
  Collectives collectives(test.world(), small_channel);
  for (const std::uint32_t count : {1u, 7u, 900u})
    for (const unsigned blocks : {1u, 2u, 3u}) {
      const GridVectors vectors(test, count);
      const auto root = (count + blocks) % static_cast<std::uint32_t>(test.size());
      test.run(test.shape(blocks, true), GridSessionKernel{}, vectors.arguments(collectives, count, root),
               join(count, " elements by ", blocks, " blocks"));
    }
}

BEELINE_CASE(sessions_across_nodes, too_many_blocks_are_refused, 1) {
  Collectives collectives(test.world(), small_channel);
  const GridVectors vectors(test, 7);
  test.run(test.shape(small_channel.sessions + 1, true), GridSessionKernel{}, vectors.arguments(collectives, 7, 0),
           "more blocks than sessions");
  test.run(test.shape(small_channel.sessions, true), GridSessionKernel{}, vectors.arguments(collectives, 7, 0),
           "as many blocks as sessions, afterwards");
}

/// More bytes than nvcc copies in registers: see host/impl/kernel_parameters_machine.hpp.
struct LargeArguments {
  CollectiveChannel channel;
  std::int32_t *in, *out;
  std::size_t counts[8];
};
static_assert(sizeof(LargeArguments) > 128);

struct LargeArgumentsKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, LargeArguments a) const {
    Session session(grid.block(), ctx, a.channel);
    if (grid.thread_rank() == 0) a.in[0] = static_cast<std::int32_t>(ctx.rank) + 1;
    grid.block().sync();
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, allreduce(session, a.out, a.in, a.counts[7], Reduction::sum));
    const auto size = static_cast<std::int32_t>(ctx.size);
    if (grid.thread_rank() == 0) BEELINE_DEVICE_CHECK_EQ(report, size * (size + 1) / 2, a.out[0]);
  }
};

BEELINE_CASE(sessions_across_nodes, large_arguments_by_value, 1) {
  Collectives collectives(test.world(), small_channel);
  const GridVectors vectors(test, 1);
  test.run(test.shape(1, true), LargeArgumentsKernel{},
           LargeArguments{collectives.channel(), vectors.in.data(), vectors.out.data(), {0, 0, 0, 0, 0, 0, 0, 1}},
           "a structure by value");
}

}  // namespace

}  // namespace beeline_test::grid_session_cases
