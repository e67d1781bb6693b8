// SPDX-License-Identifier: Apache-2.0
// All-reduce: every algorithm, type, reduction, count and alignment; on streams and in kernels; with time-outs that
// continue, over the wrap of flags, in teams.
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "beeline/collectives/allreduce.hpp"
#include "beeline/host/packets.hpp"
#include "tests/conformance/collective_calls.hpp"
#include "tests/conformance/foreign_memory.hpp"
#include "tests/conformance/guarded_area.hpp"
#include "tests/conformance/latecomer.hpp"
#include "tests/conformance/rank_test.hpp"
#include "tests/conformance/vectors.hpp"

namespace beeline_test::allreduce_cases {

namespace {

using namespace beeline;

/// Collective. Every algorithm that the world's ranks have, except those that reduce_cases.cpp tests.
std::vector<Algorithm> algorithms_of(World& world) {
  std::vector<Algorithm> all = algorithms_here(world, Operation::allreduce);
  std::erase_if(all, [](Algorithm algorithm) { return !is_of_allreduce_cases(algorithm); });
  return all;
}

/// One call on a stream, checked on this rank.
class StreamCall {
 public:
  StreamCall(RankTest& test, Collectives& collectives, std::size_t most_bytes)
      : test_(test), collectives_(collectives), source_(test.world(), most_bytes + 1024),
        destination_(test.world(), most_bytes + 1024) {}

  /// `elsewhere`: addresses of vectors outside the heap.
  void check(const VectorKey& key, std::size_t count, const Placing& placing, const CollectiveCall& call,
             const Elsewhere& elsewhere = {}) {
    const std::vector<std::byte> mine = vector_of(key, test_.rank(), count);
    GuardedArea to(test_, elsewhere.destination_or(destination_.data()), placing.destination, mine.size());
    std::byte* from = placing.in_place ? to.data() : elsewhere.source_or(source_.data()) + placing.source;
    if (!mine.empty()) test_.write(from, mine);
    collectives_.allreduce_on_stream(to.data(), from, count, key.type, key.reduction, call);
    test_.world().synchronize();
    to.check(reduced_vector(key, everyone(test_.size()), count),
             join(name(key.reduction), " of ", count, " ", name(key.type), " by ", name(call.algorithm), ", blocks ",
                  call.blocks, ", offsets ", placing.source, " and ", placing.destination,
                  placing.in_place ? ", in place" : ""));
  }

 private:
  RankTest& test_;
  Collectives& collectives_;
  SymmetricArray<std::byte> source_, destination_;
};

BEELINE_CASE(collectives, every_type_and_reduction, 1) {
  Collectives collectives(test.world(), small_channel);
  StreamCall call(test, collectives, 8 * 331);
  std::uint64_t round = 0;
  const std::uint32_t step = under_thread_sanitizer ? 4 : 1;  // threads do the same for all types
  for (std::uint32_t type = 0; type < element_types; type += step)
    for (std::uint32_t reduction = 0; reduction < reductions; ++reduction) {
      const VectorKey key{static_cast<ElementType>(type), static_cast<Reduction>(reduction), ++round};
      if (!has_reduction(key.type, key.reduction)) continue;
      for (const Algorithm algorithm : algorithms_of(test.world()))
        call.check(key, 331, {0, 0, round % 2 == 0}, call_by(algorithm, 1 + unsigned(round % 3)));
    }
}

/// Unsigned words whose highest bit is set are reduced as large numbers, not as negative ones; so is the sum of an
/// average.
template <class T>
void reduce_large_words(RankTest& test, Collectives& collectives) {
  constexpr std::size_t count = 77;
  const SymmetricArray<T> source(test.world(), count), result(test.world(), count);
  const auto ranks = static_cast<std::uint64_t>(test.size());
  const auto most = static_cast<T>(~std::uint64_t{0} / (sizeof(T) == 8 ? ranks : 1));  // the sum fits 64 bits
  std::vector<std::byte> mine, large, small;
  const auto append = [](std::vector<std::byte>& bytes, T value) {
    const auto* const first = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), first, first + sizeof value);
  };
  for (std::size_t i = 0; i < count; ++i) {
    append(mine, test.rank() == 0 ? most : T{1});
    append(large, most);
    append(small, test.size() == 1 ? most : T{1});
  }
  for (const Algorithm algorithm : algorithms_of(test.world())) {
    test.write(source.data(), mine);
    collectives.allreduce(result, source, Reduction::maximum, call_by(algorithm, 1));
    test.world().synchronize();
    check_bytes(large, test.read(result.data(), sizeof(T) * count), join("maximum by ", name(algorithm)));
    collectives.allreduce(result, source, Reduction::minimum, call_by(algorithm, 1));
    test.world().synchronize();
    check_bytes(small, test.read(result.data(), sizeof(T) * count), join("minimum by ", name(algorithm)));
    test.write(source.data(), large);
    collectives.allreduce(result, source, Reduction::average, call_by(algorithm, 1));
    test.world().synchronize();
    check_bytes(large, test.read(result.data(), sizeof(T) * count), join("average by ", name(algorithm)));
  }
}

BEELINE_CASE(collectives, unsigned_words_have_no_sign, 1) {
  Collectives collectives(test.world(), small_channel);
  reduce_large_words<std::uint32_t>(test, collectives);
  reduce_large_words<std::uint64_t>(test, collectives);
}

BEELINE_CASE(collectives, every_count_and_alignment, 1) {
  Collectives collectives(test.world(), small_channel);
  const std::size_t most = under_thread_sanitizer ? 3001 : 20011;
  StreamCall call(test, collectives, 8 * most);
  std::uint64_t round = 0;
  const std::vector<Placing> all = {{0, 0, false},  {2, 2, true},  {8, 8, false},
                                    {16, 2, false}, {6, 4, false}, {0, 0, true}};
  const std::span placings = std::span(all).first(under_thread_sanitizer ? 2 : all.size());  // threads do the same
  for (const Algorithm algorithm : algorithms_of(test.world()))
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{64},
                                    static_cast<std::size_t>(test.size()), std::size_t{1000}, most})
      for (const Placing& placing : placings) {
        ++round;
        const VectorKey key{ElementType::bfloat16, Reduction::sum, round};
        call.check(key, count, placing, call_by(algorithm, 1 + unsigned(round % 3)));
      }
}

/// Vectors at different offsets on the ranks cannot be read in place, which must not change results.
BEELINE_CASE(collectives, vectors_that_lie_unlike, 2) {
  test.skip_if(test.on_several_nodes(), ranks_on_several_nodes);
  test.skip_if(test.world().mixed(), ranks_of_both_kinds);
  Collectives collectives(test.world(), small_channel);
  StreamCall call(test, collectives, 4 * 4000);
  const std::size_t mine = 16 * static_cast<std::size_t>(test.rank());
  for (const Placing& placing : {Placing{mine, 0, false}, Placing{0, mine, false}, Placing{mine, mine, true}})
    for (const Algorithm algorithm : allreduces_in_place)
      for (const unsigned blocks : {1u, 3u})
        call.check({ElementType::float32, Reduction::sum, blocks}, 3001, placing, call_by(algorithm, blocks));
}

/// Options of a channel in which copy engines use chunks of `chunk_bytes`.
CollectiveOptions engine_channel(const RankTest& test, std::size_t chunk_bytes) {
  CollectiveOptions options = small_channel;
  options.engine_bytes = 4 * std::max<std::size_t>(1, static_cast<std::size_t>(test.size()) - 1) * chunk_bytes;
  return options;
}

/// Vectors of a part of a chunk, of one chunk, and of many chunks, the last of which are shorter.
BEELINE_CASE(collectives, engines_in_chunks, 1) {
  test.skip_if(test.on_several_nodes(), ranks_on_several_nodes);
  test.skip_if(test.world().mixed(), ranks_of_both_kinds);
  Collectives collectives(test.world(), engine_channel(test, 4096));
  const std::size_t members = static_cast<std::size_t>(test.size()), most = members * 10'001;
  StreamCall call(test, collectives, 4 * most);
  std::uint64_t round = 0;
  for (const std::size_t count : {std::size_t{1}, members * 64, members * 1024, members * 1024 + 1, most})
    for (const bool in_place : {false, true}) {
      const std::size_t mine = 16 * static_cast<std::size_t>(test.rank());
      const VectorKey key{ElementType::int32, Reduction::sum, ++round};
      call.check(key, count, {mine, 2 * mine, in_place}, {.algorithm = Algorithm::copy_engine});
      call.check(key, count, {32, 16, in_place}, {.algorithm = Algorithm::copy_engine, .symmetric = true});
    }
}

/// Calls without waits in between: a call's first copies write memory from which the previous call may still read.
BEELINE_CASE(collectives, engines_call_after_call, 1) {
  test.skip_if(test.on_several_nodes(), ranks_on_several_nodes);
  World& world = test.world();
  test.skip_if(world.mixed(), ranks_of_both_kinds);
  Collectives collectives(world, engine_channel(test, 1024));
  constexpr std::size_t calls = 8, most = 12'000;
  const SymmetricArray<std::int32_t> vectors(world, calls * most);
  const auto count_of = [](std::size_t call) { return most - call * 1499; };
  const auto key_of = [](std::size_t call) { return VectorKey{ElementType::int32, Reduction::sum, call}; };
  const auto at = [&](std::size_t call) { return reinterpret_cast<std::byte*>(vectors.data() + call * most); };
  for (std::size_t call = 0; call < calls; ++call)
    test.write(at(call), vector_of(key_of(call), test.rank(), count_of(call)));
  for (std::size_t call = 0; call < calls; ++call)
    collectives.allreduce_on_stream(
        at(call), at(call), count_of(call), ElementType::int32, Reduction::sum,
        {.algorithm = call % 4 == 3 ? Algorithm::two_shot : Algorithm::copy_engine, .symmetric = call % 4 == 2});
  world.synchronize();
  for (std::size_t call = 0; call < calls; ++call)
    check_bytes(reduced_vector(key_of(call), everyone(test.size()), count_of(call)),
                test.read(at(call), 4 * count_of(call)), join("call ", call, " of several"));
}

/// Repeated calls are recorded; here calls use more vectors in turn than recordings are kept.
BEELINE_CASE(collectives, engines_repeat_calls, 1) {
  test.skip_if(test.on_several_nodes(), ranks_on_several_nodes);
  World& world = test.world();
  test.skip_if(world.mixed(), ranks_of_both_kinds);
  Collectives collectives(world, engine_channel(test, 1024));
  constexpr std::size_t places = 6, count = 9'001;
  const SymmetricArray<std::int32_t> vectors(world, places * count);
  for (std::size_t call = 0; call < 30; ++call) {
    const std::size_t place = call < 12 ? call % 3 : call % places;
    auto* const at = reinterpret_cast<std::byte*>(vectors.data() + place * count);
    const VectorKey key{ElementType::int32, Reduction::sum, call};
    test.write(at, vector_of(key, test.rank(), count));
    collectives.allreduce_on_stream(at, at, count, key.type, key.reduction,
                                    {.algorithm = Algorithm::copy_engine, .symmetric = place == 2});
    world.synchronize();
    check_bytes(reduced_vector(key, everyone(test.size()), count), test.read(at, 4 * count), join("call ", call));
  }
}

/// Vectors that other ranks' copies and kernels cannot reach.
BEELINE_CASE(collectives, engines_on_other_memory, 1) {
  test.skip_if(test.on_several_nodes(), ranks_on_several_nodes);
  test.skip_if(test.world().mixed(), ranks_of_both_kinds);
  Collectives collectives(test.world(), engine_channel(test, 2048));
  constexpr std::size_t count = 9'999;
  const VectorKey key{ElementType::float64, Reduction::maximum, 1};
  const std::vector<std::byte> mine = vector_of(key, test.rank(), count);
  const ForeignMemory source(test, mine.size()), destination(test, mine.size());
  test.write(source.data(), mine);
  collectives.allreduce_on_stream(destination.data(), source.data(), count, key.type, key.reduction,
                                  {.algorithm = Algorithm::copy_engine});
  test.world().synchronize();
  check_bytes(reduced_vector(key, everyone(test.size()), count), test.read(destination.data(), mine.size()),
              "outside the heap");
  BEELINE_CHECK(collectives.last_transfer() == Transfer::staged);
}

/// A choice names what runs: copy engines have no blocks, and a call that asks for blocks gets a kernel.
BEELINE_CASE(collectives, choices_say_what_runs, 1) {
  Collectives collectives(test.world(), small_channel);
  for (const Operation operation : {Operation::allreduce, Operation::alltoall, Operation::broadcast}) {
    if (reason_against(test.world(), Algorithm::copy_engine).empty())
      BEELINE_CHECK_EQ(
          0u,
          collectives.choice(operation, 1 << 28, ElementType::float32, {.algorithm = Algorithm::copy_engine}).blocks);
    for (const bool symmetric : {false, true}) {
      const CollectiveCall choice =
          collectives.choice(operation, 1 << 28, ElementType::float32, {.blocks = 2, .symmetric = symmetric});
      BEELINE_CHECK(choice.algorithm != Algorithm::copy_engine);
      BEELINE_CHECK_EQ(2u, choice.blocks);
    }
  }
}

/// Vectors outside the heap: on all members or on one; source, destination or both.
BEELINE_CASE(collectives, allreduce_of_other_memory, 1) {
  Collectives collectives(test.world(), small_channel);
  StreamCall call(test, collectives, 4 * 4000);
  const ForeignMemory source(test, 4 * 4000 + 1024), destination(test, 4 * 4000 + 1024);
  std::uint64_t round = 0;
  for (const Algorithm algorithm : algorithms_of(test.world()))
    for_each_elsewhere(test.rank(), source.data(), destination.data(), [&](const Elsewhere& elsewhere) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{3001}}) {
        const CollectiveCall how = call_by(algorithm, 1 + unsigned(++round % 3));
        call.check({ElementType::float32, Reduction::sum, round}, count, {0, 0, round % 4 == 0}, how, elsewhere);
      }
    });
}

struct KernelArguments {
  CollectiveChannel channel;
  std::int64_t* vectors;   ///< [2, blocks, count] input and output of each block's calls
  std::uint64_t* waiting;  ///< [ranks] at the late rank: the last round in which each other rank timed out
  std::uint32_t count, rounds;
  bool some_are_late;
};

/// Rounds of all algorithms on one session that stays open, half of them in place. One member may be late: it calls
/// when all others' calls have timed out; these then poll a few times, and finally wait.
struct OpenSessionKernel {
  static constexpr unsigned max_threads = 128;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, KernelArguments a) const {
    const auto& block = grid.block();
    std::int64_t* in = a.vectors + std::size_t{grid.block_rank()} * a.count;
    std::int64_t* out = in + std::size_t{grid.blocks()} * a.count;
    Session session(block, ctx, a.channel, grid.block_rank());
    for (std::uint32_t round = 1; round <= a.rounds; ++round) {
      for (std::uint32_t i = block.thread_rank(); i < a.count; i += block.size())
        in[i] = static_cast<std::int64_t>(ctx.rank + 1) * round + i;
      block.sync();
      const std::uint32_t late = round % ctx.size;
      if (a.some_are_late && ctx.rank == late)
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait_for_others(block, ctx, a.waiting, round));
      bool told = !a.some_are_late || ctx.rank == late;
      std::int64_t* const to = round / 6 % 2 == 0 ? out : in;  // each algorithm in both ways in 12 rounds
      Status status = Status::timeout;
      for (std::uint32_t looks = 0; status == Status::timeout; looks += told ? 1 : 0) {
        const Timeout timeout = !told                           ? Timeout{50'000}
                                : looks < 20 && a.some_are_late ? Timeout::test()
                                                                : Timeout::none();
        status = call(session, round, to, in, a, timeout, ctx.mixed);
        if (status == Status::timeout && !told) {
          tell_latecomer(block, ctx, a.waiting, round, late);
          told = true;
        }
      }
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
      const std::int64_t ranks = ctx.size;
      for (std::uint32_t i = block.thread_rank(); i < a.count; i += block.size())
        BEELINE_DEVICE_CHECK_EQ(report, ranks * (ranks + 1) / 2 * round + ranks * i, to[i]);
      block.sync();
    }
  }

  template <class Session>
  BEELINE_HOST_DEVICE static Status call(Session& session, std::uint32_t round, std::int64_t* out,
                                         const std::int64_t* in, const KernelArguments& a, Timeout timeout,
                                         bool mixed) {
    const Algorithm algorithms[] = {Algorithm::ll_one_shot, Algorithm::ll_two_shot,    Algorithm::automatic,
                                    Algorithm::two_shot,    Algorithm::ll128_one_shot, Algorithm::ll128_two_shot};
    const Algorithm algorithm = session.spans_nodes() ? Algorithm::automatic
                                                      : algorithms[round % (mixed                       ? 3
                                                                            : session.area_lines() == 0 ? 4
                                                                                                        : 6)];
    return allreduce(session, out, in, a.count, Reduction::sum, {timeout, algorithm});
  }
};

void run_lanes(RankTest& test, const CollectiveOptions& options, unsigned blocks, bool some_are_late) {
  World& world = test.world();
  Collectives collectives(world, options);
  const std::uint32_t rounds = some_are_late ? 12 : under_thread_sanitizer || test.on_several_nodes() ? 20 : 100;
  for (const std::uint32_t count : {1u, 501u}) {
    const SymmetricArray<std::int64_t> vectors(world, 2 * std::size_t{blocks} * count);
    const SymmetricArray<std::uint64_t> waiting(world, max_ranks, test.common_heap());
    test.run(test.shape(blocks, true), OpenSessionKernel{},
             KernelArguments{collectives.channel(), vectors.data(), waiting.data(), count, rounds, some_are_late},
             join(count, " elements in kernels of ", blocks, " blocks", some_are_late ? ", some late" : ""));
  }
}

BEELINE_CASE(sessions_across_nodes, all_algorithms_in_one_session, 1) {
  run_lanes(test, small_channel, 1, false);
  run_lanes(test, small_channel, 3, false);
}

BEELINE_CASE(sessions_across_nodes, allreduce_continues_after_a_timeout, 2) { run_lanes(test, small_channel, 1, true); }

/// Rounds that begin just below those in which flags are refreshed, of either parity, and in which they repeat.
BEELINE_CASE(sessions, collective_flags_wrap, 1) {
  for (const std::uint64_t first :
       {std::uint64_t{1} << 15, std::uint64_t{1} << 16, std::uint64_t{3} << 15, std::uint64_t{1} << 32}) {
    CollectiveOptions options = small_channel;
    options.first_round = first - 5;
    run_lanes(test, options, 1, false);
  }
}

/// No round precedes the wrap: memory that was never written must not look like round 2^16 to ranks that wait.
BEELINE_CASE(sessions, collective_flags_wrap_before_a_late_member, 2) {
  CollectiveOptions options = small_channel;
  options.first_round = (std::uint64_t{1} << 16) - 1;
  run_lanes(test, options, 1, true);
}

/// Old packets remain in memory while other rounds pass, until flags repeat: they must not be taken for new ones.
/// Rounds in which flags are not refreshed are skipped.
BEELINE_CASE(sessions, flags_of_long_ago_are_not_taken, 2) {
  constexpr std::uint64_t period = std::uint64_t{1} << 15, first = period - 20;
  World& world = test.world();
  CollectiveOptions options = small_channel;
  options.first_round = first;
  Collectives collectives(world, options);
  const SymmetricArray<std::int64_t> vectors(world, 40);
  const auto call_with_latecomer = [&] {
    const SymmetricArray<std::uint64_t> waiting(world, max_ranks, test.common_heap());
    test.run(test.shape(1, true), OpenSessionKernel{},
             KernelArguments{collectives.channel(), vectors.data(), waiting.data(), 20, 1, true},
             "a call of one round");
  };
  const auto go_on_from = [&](std::uint64_t round) {
    world.barrier();  // members that still wait compare the calls in this state
    SessionState state;
    world.copy(&state, collectives.channel().states, sizeof state);
    state.round = round << beeline::detail::signature_bits;
    world.copy(collectives.channel().states, &state, sizeof state);
    world.barrier();
    for (int i = 0; i < 30; ++i) collectives.barrier_on_stream();
    world.synchronize();
  };
  call_with_latecomer();
  go_on_from(period - 10);
  go_on_from(2 * period - 10);
  go_on_from(2 * period + first - 30);  // its last round precedes the call, and was 2^16 rounds ago
  call_with_latecomer();
}

BEELINE_CASE(collectives, collectives_of_two_teams, 2) {
  World& world = test.world();
  const std::vector<int> members = test.alternate_ranks();
  const std::unique_ptr<Team> team = world.make_team(members);
  Collectives collectives(*team, small_channel);
  const SymmetricArray<std::byte> source(world, 4096), destination(world, 4096);
  for (const Algorithm algorithm : algorithms_here(*team, Operation::allreduce))
    for (std::uint64_t round = 0; round < 20; ++round) {
      const VectorKey key{ElementType::int32, Reduction::sum, round};
      test.write(source.data(), vector_of(key, test.rank(), 301));
      collectives.allreduce_on_stream(destination.data(), source.data(), 301, key.type, key.reduction,
                                      {.algorithm = algorithm});
      world.synchronize();
      check_bytes(reduced_vector(key, members, 301), test.read(destination.data(), 4 * 301), name(algorithm));
    }
  world.barrier();
}

BEELINE_CASE(collectives, collectives_refused, 1) {
  Collectives collectives(test.world(), small_channel);
  const SymmetricArray<float> vector(test.world(), 64);
  float* data = vector.data();
  const auto call = [&](void* to, const void* from, std::size_t count, ElementType type, Reduction reduction,
                        const CollectiveCall& how = {}) {
    return [=, &collectives] { collectives.allreduce_on_stream(to, from, count, type, reduction, how); };
  };
  constexpr auto f32 = ElementType::float32;
  expect_refused("null pointer", call(nullptr, data, 4, f32, Reduction::sum));
  expect_refused("null pointer", call(data, nullptr, 4, f32, Reduction::sum));
  expect_refused("not aligned", call(reinterpret_cast<std::byte*>(data) + 2, data, 4, f32, Reduction::sum));
  expect_refused("overlap", call(data + 1, data, 4, f32, Reduction::sum));
  expect_refused("more than an address space", call(data, data, SIZE_MAX / 2, f32, Reduction::sum));
  expect_refused("no bit_xor of float32", call(data, data, 4, f32, Reduction::bit_xor));
  expect_refused("element type 9", call(data, data, 4, static_cast<ElementType>(9), Reduction::sum));
  expect_refused("4 blocks on a channel of 3 sessions", call(data, data, 4, f32, Reduction::sum, {.blocks = 4}));
  expect_refused("no algorithm peer", call(data, data, 4, f32, Reduction::sum, {.algorithm = Algorithm::peer}));
  collectives.allreduce_on_stream(nullptr, nullptr, 0, f32, Reduction::sum);  // is not
  test.world().synchronize();
  expect_refused("allreduce has no algorithm unknown",
                 call(nullptr, nullptr, 0, f32, Reduction::sum, {.algorithm = static_cast<Algorithm>(99)}));
  expect_refused("reduction number 77 does not exist", call(data, data, 4, f32, static_cast<Reduction>(77)));
  expect_refused("more than an address space",
                 [&] { static_cast<void>(collectives.choice(Operation::allreduce, SIZE_MAX / 4, f32)); });
  if (test.size() > 2)
    expect_refused("more than an address space", [&] {
      static_cast<void>(collectives.choice(Operation::alltoall, SIZE_MAX / 2, ElementType::uint8));
    });
  if (test.size() > 1)
    expect_refused("different options", [&] { Collectives(test.world(), {.sessions = test.rank() == 0 ? 2u : 3u}); });
  if (!test.world().mixed() && !test.world().device().is_gpu() && test.size() > 2 && !test.on_several_nodes()) {
    Collectives small(test.world(), {.sessions = 1, .staging_bytes = 256});
    const std::string needs = join(
        "the channel has 512 bytes for it (engine_bytes, or else two times staging_bytes on each session), and needs ",
        1280 * (test.size() - 1));
    expect_refused(needs.c_str(), [&] {
      small.allreduce_on_stream(data, data, 4, f32, Reduction::sum, {.algorithm = Algorithm::copy_engine});
    });
  }
  expect_refused("copy_engine: 2 blocks were asked for, and engines have none",
                 call(data, data, 4, f32, Reduction::sum, {.algorithm = Algorithm::copy_engine, .blocks = 2}));
  expect_refused("engine_bytes 100: a multiple of 256", [&] { Collectives(test.world(), {.engine_bytes = 100}); });
  if (test.size() > 1)
    expect_refused("different options",
                   [&] { Collectives(test.world(), {.engine_bytes = static_cast<std::size_t>(test.rank()) * 256}); });
  if (!test.world().mixed() || test.on_several_nodes()) {
    expect_refused(test.on_several_nodes() ? "do not serve members on several nodes" : "no room for",
                   [&] { Collectives(test.world(), {.engine_bytes = std::size_t{1} << 40}); });
    std::vector<float> outside(4);
    expect_refused(
        test.on_several_nodes() ? "on other nodes; across_nodes serves" : "allreduce: destination ",
        call(outside.data(), data, 4, f32, Reduction::sum, {.algorithm = Algorithm::copy_engine, .symmetric = true}));
  } else {
    expect_refused("do not serve ranks of both kinds", [&] { Collectives(test.world(), {.engine_bytes = 4096}); });
  }
  expect_refused("at most 1024", [&] { Collectives(test.world(), {.sessions = 1025}); });
}

}  // namespace

}  // namespace beeline_test::allreduce_cases
