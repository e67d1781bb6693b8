// SPDX-License-Identifier: Apache-2.0
// Reduce, reduce-scatter, and all-reduce by the algorithms of seed 000: every type, reduction, count, alignment and
// root; on streams and in kernels, with time-outs that continue, in teams.
#include <algorithm>
#include <memory>

#include "beeline/collectives/allreduce.hpp"
#include "beeline/collectives/reduce.hpp"
#include "tests/conformance/collective_calls.hpp"
#include "tests/conformance/foreign_memory.hpp"
#include "tests/conformance/guarded_area.hpp"
#include "tests/conformance/latecomer.hpp"
#include "tests/conformance/rank_test.hpp"
#include "tests/conformance/vectors.hpp"

namespace beeline_test::reduce_cases {

namespace {

using namespace beeline;

enum class Kind : std::uint32_t { reduce, allreduce, reduce_scatter };
constexpr Kind kinds[] = {Kind::reduce, Kind::allreduce, Kind::reduce_scatter};
constexpr const char* kind_names[] = {"reduce", "all-reduce", "reduce-scatter"};

constexpr Operation operations_of_kinds[] = {Operation::reduce, Operation::allreduce, Operation::reduce_scatter};

/// Collective. Algorithms of the operation; for all-reduces those that allreduce_cases.cpp does not test.
std::vector<Algorithm> algorithms_of(Team& team, Kind kind) {
  std::vector<Algorithm> all = algorithms_here(team, operations_of_kinds[static_cast<std::uint32_t>(kind)]);
  if (kind == Kind::allreduce) std::erase_if(all, is_of_allreduce_cases);
  return all;
}

/// Calls `body(kind, algorithm)` for every kind and algorithm that the team has.
template <class Body>
void for_each_way(Team& team, Body body) {
  for (const Kind kind : kinds)
    for (const Algorithm algorithm : algorithms_of(team, kind)) body(kind, algorithm);
}

/// One call on a stream, checked on this rank. Vectors of a reduce-scatter have a part for each member.
class StreamCall {
 public:
  StreamCall(RankTest& test, Collectives& collectives, std::vector<int> members, std::size_t most_bytes)
      : test_(test), collectives_(collectives), members_(std::move(members)), source_(test.world(), most_bytes + 1024),
        destination_(test.world(), most_bytes + 1024) {}

  /// `elsewhere`: addresses of vectors outside the heap.
  void check(Kind kind, const VectorKey& key, std::size_t count, const Placing& placing, const CollectiveCall& how,
             const Elsewhere& elsewhere = {}) {
    const std::size_t rank = collectives_.team().context().rank, size = members_.size(),
                      bytes = count * bytes_of(key.type);
    const bool scatters = kind == Kind::reduce_scatter;
    const int root = static_cast<int>(key.round % size);
    const std::vector<std::byte> mine = vector_of(key, test_.rank(), scatters ? size * count : count);
    std::vector<std::byte> expected = reduced_vector(key, members_, scatters ? size * count : count);
    if (scatters) {
      const auto first = expected.begin() + static_cast<std::ptrdiff_t>(rank * bytes);
      expected = {first, first + static_cast<std::ptrdiff_t>(bytes)};
    }
    const bool gets = kind != Kind::reduce || static_cast<int>(rank) == root;
    if (!gets) expected.clear();
    GuardedArea to(test_, elsewhere.destination_or(destination_.data()), placing.destination, expected.size());
    std::byte* from = elsewhere.source_or(source_.data()) + placing.source;
    std::byte* target = to.data();
    if (placing.in_place && gets && !scatters) from = target;
    if (placing.in_place && scatters) target = from + rank * bytes;
    if (!mine.empty()) test_.write(from, mine);
    if (kind == Kind::reduce)
      collectives_.reduce_on_stream(target, from, count, key.type, key.reduction, root, how);
    else if (scatters)
      collectives_.reduce_scatter_on_stream(target, from, count, key.type, key.reduction, how);
    else
      collectives_.allreduce_on_stream(target, from, count, key.type, key.reduction, how);
    test_.world().synchronize();
    const std::string what =
        join(kind_names[static_cast<int>(kind)], ", ", name(key.reduction), " of ", count, " ", name(key.type), " by ",
             name(how.algorithm), ", root ", root, ", blocks ", how.blocks, ", offsets ", placing.source, " and ",
             placing.destination, placing.in_place ? ", in place" : "");
    if (target != to.data())
      check_bytes(expected, test_.read(target, bytes), what);
    else
      to.check(expected, what);
  }

 private:
  RankTest& test_;
  Collectives& collectives_;
  std::vector<int> members_;
  SymmetricArray<std::byte> source_, destination_;
};

BEELINE_CASE(collectives, named_reductions_of_every_type, 1) {
  Collectives collectives(test.world(), small_channel);
  StreamCall call(test, collectives, everyone(test.size()), 8 * 331 * static_cast<std::size_t>(test.size()));
  std::uint64_t round = 0;
  const std::uint32_t step = under_thread_sanitizer ? 4 : 1;  // threads do the same for all types
  for (std::uint32_t type = 0; type < element_types; type += step)
    for (std::uint32_t reduction = 0; reduction < reductions; ++reduction)
      for_each_way(test.world(), [&](Kind kind, Algorithm algorithm) {
        const VectorKey key{static_cast<ElementType>(type), static_cast<Reduction>(reduction), ++round};
        if (has_reduction(key.type, key.reduction))
          call.check(kind, key, 331, {0, 0, round % 2 == 0},
                     {.algorithm = algorithm, .blocks = 1 + unsigned(round % 3)});
      });
}

BEELINE_CASE(collectives, named_reductions_of_every_count, 1) {
  Collectives collectives(test.world(), small_channel);
  const std::size_t most = under_thread_sanitizer ? 1001 : 6011;
  StreamCall call(test, collectives, everyone(test.size()), 2 * most * static_cast<std::size_t>(test.size()));
  std::uint64_t round = 0;
  for_each_way(test.world(), [&](Kind kind, Algorithm algorithm) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{64},
                                    static_cast<std::size_t>(test.size()), std::size_t{1000}, most})
      for (const Placing& placing : {Placing{0, 0, false}, Placing{8, 8, true}, Placing{6, 4, false}})
        call.check(kind, {ElementType::bfloat16, Reduction::sum, ++round}, count, placing,
                   {.algorithm = algorithm, .blocks = 1 + unsigned(round % 3)});
  });
}

/// Vectors at different offsets on the ranks cannot be read in place, which must not change results.
BEELINE_CASE(collectives, named_reductions_that_lie_unlike, 2) {
  Collectives collectives(test.world(), small_channel);
  StreamCall call(test, collectives, everyone(test.size()), 4 * 2000 * static_cast<std::size_t>(test.size()));
  const std::size_t mine = 16 * static_cast<std::size_t>(test.rank());
  std::uint64_t round = 0;
  for_each_way(test.world(), [&](Kind kind, Algorithm algorithm) {
    for (const Placing& placing : {Placing{mine, 0, false}, Placing{0, mine, false}})
      call.check(kind, {ElementType::float32, Reduction::sum, ++round}, 1501, placing,
                 {.algorithm = algorithm, .blocks = 1 + unsigned(round % 3)});
  });
}

/// Vectors outside the heap: on all members or on one; source, destination or both.
BEELINE_CASE(collectives, named_reductions_of_other_memory, 1) {
  Collectives collectives(test.world(), small_channel);
  const std::size_t bytes = 4 * 1501 * static_cast<std::size_t>(test.size());
  StreamCall call(test, collectives, everyone(test.size()), bytes);
  const ForeignMemory source(test, bytes + 1024), destination(test, bytes + 1024);
  std::uint64_t round = 0;
  for_each_way(test.world(), [&](Kind kind, Algorithm algorithm) {
    for_each_elsewhere(test.rank(), source.data(), destination.data(), [&](const Elsewhere& elsewhere) {
      const CollectiveCall how{.algorithm = algorithm, .blocks = 1 + unsigned(++round % 3)};
      call.check(kind, {ElementType::float32, Reduction::sum, round}, 1501, {0, 0, false}, how, elsewhere);
    });
  });
}

/// Across nodes: vectors longer than the staging memory, readable by other members, not readable, or one of each.
BEELINE_CASE(collectives, reductions_in_many_blocks, 2) {
  test.skip_if(!test.on_several_nodes(), "ranks of one node: their algorithms have no such blocks");
  Collectives collectives(test.world(), small_channel);
  const std::size_t count = under_thread_sanitizer ? 30'011 : 300'007,
                    bytes = 4 * count * static_cast<std::size_t>(test.size());
  StreamCall call(test, collectives, everyone(test.size()), bytes);
  const ForeignMemory source(test, bytes + 1024), destination(test, bytes + 1024);
  std::uint64_t round = 0;
  for_each_way(test.world(), [&](Kind kind, Algorithm algorithm) {
    if (algorithm == Algorithm::automatic) return;
    const CollectiveCall how{.algorithm = algorithm};
    for (const bool in_place : {false, true})
      call.check(kind, {ElementType::float32, Reduction::sum, ++round}, count, {0, 0, in_place}, how);
    for_each_elsewhere(test.rank(), source.data(), destination.data(), [&](const Elsewhere& elsewhere) {
      call.check(kind, {ElementType::float32, Reduction::sum, ++round}, count, {0, 0, false}, how, elsewhere);
    });
  });
}

BEELINE_CASE(collectives, named_reductions_in_two_teams, 2) {
  World& world = test.world();
  std::uint64_t teams = 0;
  for (const std::vector<int>& members : {test.alternate_ranks(), test.all_but_one()}) {
    const std::unique_ptr<Team> team = world.make_team(members);
    // Each team has rounds of its own: its members were in different teams before, which had different algorithms.
    std::uint64_t round = 1000 * teams++;
    Collectives collectives(*team, small_channel);
    StreamCall call(test, collectives, members, 4 * 501 * static_cast<std::size_t>(test.size()));
    for_each_way(*team, [&](Kind kind, Algorithm algorithm) {
      for (int i = 0; i < 3; ++i)
        call.check(kind, {ElementType::int32, Reduction::sum, ++round}, 501, {0, 0, false}, {.algorithm = algorithm});
    });
    world.barrier();
  }
}

struct KernelArguments {
  CollectiveChannel channel;
  std::int64_t* vectors;   ///< [ranks + 1, count] input, a part for each rank; then output
  std::uint64_t* waiting;  ///< [ranks] at the late rank: the last round in which each other rank timed out
  std::uint32_t count, rounds;
  bool some_are_late;
};

struct Way {
  Kind kind;
  Algorithm algorithm;
};

/// Rounds of all operations and algorithms on one session that stays open; one member may be late: it calls when all
/// others that wait for it have timed out.
struct OpenSessionKernel {
  static constexpr unsigned max_threads = 128;
  static constexpr std::size_t shared_bytes = sizeof(BulkBuffer);
  static constexpr std::uint32_t ways = 15;

  BEELINE_HOST_DEVICE static Way way_of(std::uint32_t round, bool mixed) {
    constexpr Way all[] = {{Kind::reduce, Algorithm::ll},
                           {Kind::reduce_scatter, Algorithm::ll},
                           {Kind::reduce, Algorithm::gather},
                           {Kind::allreduce, Algorithm::allgather},
                           {Kind::reduce_scatter, Algorithm::read},
                           {Kind::allreduce, Algorithm::gather_cast},
                           {Kind::reduce, Algorithm::alltoall_gather},
                           {Kind::allreduce, Algorithm::alltoall_allgather},
                           {Kind::reduce_scatter, Algorithm::peer},
                           {Kind::reduce, Algorithm::tree},
                           {Kind::allreduce, Algorithm::tree},
                           {Kind::allreduce, Algorithm::read},
                           {Kind::reduce, Algorithm::read},
                           {Kind::reduce_scatter, Algorithm::bulk},
                           {Kind::reduce, Algorithm::two_shot}};
    return all[round % (mixed ? 2 : ways)];
  }

  template <class Session>
  BEELINE_HOST_DEVICE static Status call(Session& session, Way way, std::uint32_t root, const KernelArguments& a) {
    const Context& ctx = session.context();
    const std::int64_t* in = a.vectors;
    std::int64_t* out = a.vectors + std::size_t{ctx.size} * a.count;
    const Timeout timeout = a.some_are_late ? Timeout{50'000} : Timeout::none();
    const SessionCall how{timeout, session.spans_nodes() ? Algorithm::automatic : way.algorithm, bulk_buffer()};
    if (way.kind == Kind::reduce) return reduce(session, out, in, a.count, Reduction::sum, root, how);
    if (way.kind == Kind::reduce_scatter) return reduce_scatter(session, out, in, a.count, Reduction::sum, how);
    return allreduce(session, out, in, a.count, Reduction::sum, how);
  }

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, KernelArguments a) const {
    const auto& block = grid.block();
    const std::int64_t* out = a.vectors + std::size_t{ctx.size} * a.count;
    const std::int64_t ranks = ctx.size;
    Session session(block, ctx, a.channel);
    for (std::uint32_t round = 1; round <= a.rounds; ++round) {
      const Way way = way_of(round, ctx.mixed);
      const std::uint32_t root = round % ctx.size, late = (round / ways + round) % ctx.size;
      for (std::uint32_t i = block.thread_rank(); i < ctx.size * a.count; i += block.size())
        a.vectors[i] = static_cast<std::int64_t>(ctx.rank + 1) * round + i;
      block.sync();
      // In packets to the root only the root waits.
      const bool some_wait = a.some_are_late && !(way.kind == Kind::reduce && way.algorithm == Algorithm::ll);
      if (some_wait && ctx.rank == late)
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait_for_others(block, ctx, a.waiting, round));
      bool told = !some_wait || ctx.rank == late;
      Status status = Status::timeout;
      while (status == Status::timeout) {
        status = call(session, way, root, a);
        if (status == Status::timeout && !told) {
          tell_latecomer(block, ctx, a.waiting, round, late);
          told = true;
        }
      }
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
      const std::int64_t part = way.kind == Kind::reduce_scatter ? std::int64_t{ctx.rank} * a.count : 0;
      const bool gets = way.kind != Kind::reduce || ctx.rank == root;
      for (std::uint32_t i = block.thread_rank(); gets && i < a.count; i += block.size())
        BEELINE_DEVICE_CHECK_EQ(report, ranks * (ranks + 1) / 2 * round + ranks * (part + i), out[i]);
      block.sync();
    }
  }
};

void run_lanes(RankTest& test, const CollectiveOptions& options, bool some_are_late) {
  World& world = test.world();
  Collectives collectives(world, options);
  const std::uint32_t rounds = OpenSessionKernel::ways * (some_are_late || under_thread_sanitizer ? 2 : 6);
  for (const std::uint32_t count : {1u, 301u}) {
    const SymmetricArray<std::int64_t> vectors(world, (static_cast<std::size_t>(test.size()) + 1) * count);
    const SymmetricArray<std::uint64_t> waiting(world, max_ranks, test.common_heap());
    test.run(test.shape(1, true), OpenSessionKernel{},
             KernelArguments{collectives.channel(), vectors.data(), waiting.data(), count, rounds, some_are_late},
             join(count, " elements reduced in kernels", some_are_late ? ", some late" : ""));
  }
}

BEELINE_CASE(sessions, named_reductions_in_kernels, 1) { run_lanes(test, small_channel, false); }

BEELINE_CASE(sessions_across_nodes, named_reductions_continue_after_a_timeout, 2) {
  run_lanes(test, small_channel, true);
}

/// With fewer elements than members there is no work to share: an algorithm by parts becomes all-gather or gather. The
/// round numbers of a call show that, since exchanging results of parts would take one more round.
BEELINE_CASE(sessions, work_is_shared_from_one_element_a_member, 2) {
  test.skip_if(test.world().mixed(), ranks_of_both_kinds);
  Collectives collectives(test.world(), small_channel);
  const auto members = static_cast<std::size_t>(test.size());
  StreamCall call(test, collectives, everyone(test.size()), 4 * members);
  std::uint64_t calls = 0;
  const auto number_of_round = [&] {
    return test.read_value(collectives.channel().states).round >> detail::signature_bits;
  };
  const auto rounds_of = [&](Kind kind, Algorithm algorithm, std::size_t count) {
    const std::uint64_t before = number_of_round();
    call.check(kind, {ElementType::float32, Reduction::sum, ++calls}, count, {0, 0, false},
               {.algorithm = algorithm, .blocks = 1});
    return number_of_round() - before;
  };
  struct Pair {
    Kind kind;
    Algorithm by_parts, whole;
  };
  for (const Pair& pair : {Pair{Kind::reduce, Algorithm::alltoall_gather, Algorithm::gather},
                           Pair{Kind::allreduce, Algorithm::alltoall_allgather, Algorithm::allgather},
                           Pair{Kind::allreduce, Algorithm::bulk, Algorithm::allgather}})
    for (const std::size_t count : {members - 1, members})
      BEELINE_CHECK_EQ(rounds_of(pair.kind, pair.whole, count) + (count < members ? 0 : 1),
                       rounds_of(pair.kind, pair.by_parts, count));
}

BEELINE_CASE(collectives, named_reductions_refused, 1) {
  Collectives collectives(test.world(), small_channel);
  const SymmetricArray<float> vector(test.world(), 1024);
  float* data = vector.data();
  constexpr auto f32 = ElementType::float32;
  constexpr auto sum = Reduction::sum;
  expect_refused("root 77 of", [&] { collectives.reduce_on_stream(data, data, 4, f32, sum, 77); });
  expect_refused("null pointer", [&] { collectives.reduce_scatter_on_stream(nullptr, data, 4, f32, sum); });
  expect_refused("null pointer", [&] { collectives.reduce_on_stream(data, nullptr, 4, f32, sum, 0); });
  expect_refused("overlap", [&] { collectives.reduce_scatter_on_stream(data + 1023, data + 1022, 4, f32, sum); });
  expect_refused("no bit_or of float32",
                 [&] { collectives.reduce_on_stream(data, data, 4, f32, Reduction::bit_or, 0); });
  expect_refused("reduce has no algorithm allgather", [&] {
    collectives.reduce_on_stream(data, data, 4, f32, sum, 0, {.algorithm = Algorithm::allgather});
  });
  expect_refused("reduce_scatter has no algorithm tree", [&] {
    collectives.reduce_scatter_on_stream(data, data + 512, 4, f32, sum, {.algorithm = Algorithm::tree});
  });
  expect_refused("4 blocks on a channel of 3 sessions",
                 [&] { collectives.reduce_on_stream(data, data, 4, f32, sum, 0, {.blocks = 4}); });
  if (test.size() > 16) expect_refused("at least", [&] { Collectives(test.world(), {.staging_bytes = 256}); });
}

BEELINE_CASE(crowded_collectives, crowded_reductions, 1) {
  Collectives collectives(test.world(), {.sessions = 1, .packet_bytes = 64, .staging_bytes = 1024});
  StreamCall call(test, collectives, everyone(test.size()), 4 * 99 * static_cast<std::size_t>(test.size()));
  std::uint64_t round = 0;
  for (const Way& way : {Way{Kind::reduce, Algorithm::tree}, Way{Kind::allreduce, Algorithm::alltoall_allgather},
                         Way{Kind::reduce_scatter, Algorithm::ll}})
    call.check(way.kind, {ElementType::int32, Reduction::sum, ++round}, 99, {0, 0, false},
               {.algorithm = way.algorithm});
  const std::size_t few = static_cast<std::size_t>(test.size()) - 1;
  BEELINE_CHECK(collectives.choice(Operation::allreduce, few, ElementType::float64).algorithm ==
                Algorithm::ll_one_shot);
}

}  // namespace

}  // namespace beeline_test::reduce_cases
