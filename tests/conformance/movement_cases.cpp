// SPDX-License-Identifier: Apache-2.0
// Collectives that move data: every operation by every algorithm, of any count, alignment, root and memory; on streams
// and in kernels, with time-outs that continue, in teams.
#include <algorithm>
#include <bit>
#include <memory>

#include "beeline/collectives/movement.hpp"
#include "beeline/host/packets.hpp"
#include "tests/conformance/collective_calls.hpp"
#include "tests/conformance/foreign_memory.hpp"
#include "tests/conformance/guarded_area.hpp"
#include "tests/conformance/latecomer.hpp"
#include "tests/conformance/rank_test.hpp"

namespace beeline_test::movement_cases {

namespace {

using namespace beeline;

/// Operations that move pieces of one length.
constexpr Operations moves =
    operations_where([](const CollectiveShape& shape) { return !shape.reduces && !shape.varies; });

/// The data that one call moves, different in each round. Ranks are the team's.
struct Pieces {
  Operation move;
  std::uint64_t round;
  int size, root;
  std::size_t bytes;

  [[nodiscard]] bool one_sends() const { return is_of_root(find_shape(move)->source); }
  [[nodiscard]] bool one_receives() const { return is_of_root(find_shape(move)->destination); }
  [[nodiscard]] bool parts_differ() const { return has_pieces(find_shape(move)->source); }
  [[nodiscard]] bool is_collected() const { return has_pieces(find_shape(move)->destination); }

  void append_piece(std::vector<std::byte>& to, int from, int peer) const {
    const auto key = static_cast<std::uint64_t>(from * 64 + (parts_differ() ? peer : 0)) + 4096 * round;
    to.resize(to.size() + bytes);
    fill_pattern(to.data() + to.size() - bytes, key, bytes);
  }
  [[nodiscard]] std::vector<std::byte> source(int rank) const {
    std::vector<std::byte> all;
    if (one_sends() && rank != root) return all;
    for (int peer = 0; peer < (parts_differ() ? size : 1); ++peer) append_piece(all, rank, peer);
    return all;
  }
  [[nodiscard]] std::vector<std::byte> expected(int rank) const {
    std::vector<std::byte> all;
    if (one_receives() && rank != root) return all;
    if (!is_collected()) append_piece(all, root, rank);
    for (int from = 0; is_collected() && from < size; ++from) append_piece(all, from, rank);
    return all;
  }
};

/// One call on a stream, checked on this rank.
class StreamCall {
 public:
  StreamCall(RankTest& test, Collectives& collectives, std::size_t most_bytes)
      : test_(test), collectives_(collectives), source_(test.world(), most_bytes + 1024),
        destination_(test.world(), most_bytes + 1024) {}

  /// `elsewhere`: addresses of vectors outside the heap.
  void check(const Pieces& pieces, const Placing& placing, const CollectiveCall& how, const Elsewhere& elsewhere = {}) {
    const int rank = collectives_.team().rank();
    const std::vector<std::byte> mine = pieces.source(rank);
    std::vector<std::byte> expected = pieces.expected(rank);
    GuardedArea to(test_, elsewhere.destination_or(destination_.data()), placing.destination, expected.size());
    std::byte* target = to.data();
    std::byte* from = elsewhere.source_or(source_.data()) + placing.source;
    if (placing.in_place && pieces.is_collected() && !expected.empty())
      from = to.data() + static_cast<std::size_t>(rank) * pieces.bytes;
    if (placing.in_place && pieces.one_sends() && !pieces.parts_differ() && rank == pieces.root) from = to.data();
    if (!mine.empty()) test_.write(from, mine);
    const bool in_source = placing.in_place && pieces.one_sends() && pieces.parts_differ() && rank == pieces.root;
    if (in_source) target = from + static_cast<std::size_t>(rank) * pieces.bytes;
    collectives_.call_on_stream({.operation = pieces.move,
                                 .element = {ElementType::uint8},
                                 .root = static_cast<std::uint32_t>(pieces.root),
                                 .count = pieces.bytes},
                                target, from, how);
    test_.world().synchronize();
    const std::string what = join(name(pieces.move), " of ", pieces.bytes, " bytes by ", name(how.algorithm), ", root ",
                                  pieces.root, ", blocks ", how.blocks, ", offsets ", placing.source, " and ",
                                  placing.destination, placing.in_place ? ", in place" : "");
    if (in_source)
      check_bytes(mine, test_.read(from, mine.size()), what);
    else
      to.check(expected, what);
  }

 private:
  RankTest& test_;
  Collectives& collectives_;
  SymmetricArray<std::byte> source_, destination_;
};

/// Calls `body(move, algorithm)` for every operation and algorithm that the team has.
template <class Body>
void for_each_way(Team& team, Body body) {
  for (const CollectiveShape& shape : collective_shapes)
    if (contains(moves, shape.operation))
      for (const Algorithm algorithm : algorithms_here(team, shape.operation)) body(shape.operation, algorithm);
}

BEELINE_CASE(collectives, movement_of_every_count, 1) {
  Collectives collectives(test.world(), small_channel);
  const std::size_t most = under_thread_sanitizer ? 3001 : 20011;
  StreamCall call(test, collectives, static_cast<std::size_t>(test.size()) * most);
  std::uint64_t round = 0;
  for_each_way(test.world(), [&](Operation move, Algorithm algorithm) {
    const CollectiveShape& shape = *find_shape(move);
    const bool pieces_both_ways = has_pieces(shape.source) && has_pieces(shape.destination);
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{515}, most})
      for (const Placing& placing : {Placing{0, 0, false}, Placing{3, 5, false}, Placing{8, 24, true}}) {
        ++round;
        if (placing.in_place && pieces_both_ways) continue;
        const int root = static_cast<int>(round % static_cast<std::uint64_t>(test.size()));
        call.check({move, round, test.size(), root, bytes}, placing, call_by(algorithm, 1 + unsigned(round % 3)));
      }
  });
}

/// Copy engines move data in chunks through memory of their own, and directly if the caller declares destinations
/// symmetric.
BEELINE_CASE(collectives, movement_by_engines, 1) {
  test.skip_if(test.on_several_nodes(), ranks_on_several_nodes);
  test.skip_if(test.world().mixed(), ranks_of_both_kinds);
  CollectiveOptions options = small_channel;
  options.engine_bytes = 4 * std::max<std::size_t>(1, static_cast<std::size_t>(test.size()) - 1) * 2048;
  Collectives collectives(test.world(), options);
  constexpr std::size_t most = 40'001;
  StreamCall call(test, collectives, static_cast<std::size_t>(test.size()) * most);
  const auto rank = static_cast<std::size_t>(test.rank());
  std::uint64_t round = 0;
  for_each_way(test.world(), [&](Operation move, Algorithm algorithm) {
    if (algorithm != Algorithm::copy_engine) return;
    for (const std::size_t bytes : {std::size_t{2048}, std::size_t{10'000}, most})
      for (const bool symmetric : {false, true}) {
        const Placing placing = symmetric ? Placing{rank, 16, false} : Placing{rank, 3 * rank, false};
        const int root = static_cast<int>(++round % static_cast<std::uint64_t>(test.size()));
        call.check({move, round, test.size(), root, bytes}, placing,
                   {.algorithm = Algorithm::copy_engine, .symmetric = symmetric});
        const Transfer expected = symmetric ? Transfer::in_place : Transfer::staged;
        BEELINE_CHECK(collectives.last_transfer() == expected);
      }
  });
}

BEELINE_CASE(collectives, movement_between_unlike_addresses, 2) {
  Collectives collectives(test.world(), small_channel);
  StreamCall call(test, collectives, static_cast<std::size_t>(test.size()) * 3001);
  const auto rank = static_cast<std::size_t>(test.rank());
  std::uint64_t round = 0;
  for_each_way(test.world(), [&](Operation move, Algorithm algorithm) {
    for (const Placing& placing : {Placing{16 * rank, 32 * rank, false}, Placing{rank, 3 * rank, false}})
      call.check({move, ++round, test.size(), test.size() - 1, 3001}, placing,
                 call_by(algorithm, 1 + unsigned(round % 3)));
  });
}

/// Destinations of some members are outside the heap and cannot be stored into directly, which must not change results.
BEELINE_CASE(collectives, movement_to_other_memory, 2) {
  Collectives collectives(test.world(), small_channel);
  StreamCall call(test, collectives, static_cast<std::size_t>(test.size()) * 3001);
  const ForeignMemory memory(test, static_cast<std::size_t>(test.size()) * 3001 + 1024);
  std::uint64_t round = 0;
  for_each_way(test.world(), [&](Operation move, Algorithm algorithm) {
    for (const bool all : {true, false})
      for (const std::size_t bytes : {std::size_t{1}, std::size_t{3001}})
        call.check({move, ++round, test.size(), 0, bytes}, {0, 0, false}, call_by(algorithm, 1 + unsigned(round % 3)),
                   {nullptr, all || test.rank() == test.size() - 1 ? memory.data() : nullptr});
  });
}

/// Sources outside the heap, from which other ranks cannot fetch.
BEELINE_CASE(collectives, movement_from_other_memory, 2) {
  Collectives collectives(test.world(), small_channel);
  StreamCall call(test, collectives, static_cast<std::size_t>(test.size()) * 3001);
  const std::size_t room = static_cast<std::size_t>(test.size()) * 3001 + 1024;
  const ForeignMemory source(test, room), destination(test, room);
  std::uint64_t round = 0;
  for_each_way(test.world(), [&](Operation move, Algorithm algorithm) {
    for (const bool both : {false, true}) {
      call.check({move, ++round, test.size(), 0, 3001}, {0, 0, false}, call_by(algorithm, 1 + unsigned(round % 3)),
                 {source.data(), both ? destination.data() : nullptr});
    }
  });
}

/// Elements that member `from` sends to `to` in a round: none, few, or many rounds of packets.
std::size_t varied_count(std::uint64_t round, int from, int to) {
  const std::uint64_t mixed =
      (round * 4099 + static_cast<std::uint64_t>(from) * 67 + static_cast<std::uint64_t>(to)) * 0x9e3779b97f4a7c15u;
  const std::size_t kinds[] = {0, 1, 17, 700};
  return round == 1 ? 0 : kinds[mixed >> 62];
}

/// An all-to-all-v of `count(from, to)` elements, at most `most`, checked on this rank.
///   elsewhere  addresses of this rank's vectors outside the heap: [ranks, most + 3], and 128 elements
template <class Count>
void check_varied(RankTest& test, Collectives& collectives, std::uint64_t round, std::size_t most, const Count& count,
                  const Elsewhere& elsewhere = {}) {
  using Element = std::uint16_t;
  World& world = test.world();
  const int size = test.size(), rank = test.rank();
  const std::size_t step = most + 3, room = static_cast<std::size_t>(size) * step;
  const SymmetricArray<Element> heap_source(world, room), heap_destination(world, room + 128);
  std::byte* const source = elsewhere.source_or(reinterpret_cast<std::byte*>(heap_source.data()));
  const auto element = [](int from, int to, std::size_t i) {
    return static_cast<Element>(static_cast<std::size_t>(from * 1000 + to * 100) + i);
  };
  std::vector<std::size_t> counts[2], offsets[2];
  std::vector<Element> sent(room), expected(room, 0xa5a5);
  for (int peer = 0; peer < size; ++peer) {
    for (int way = 0; way < 2; ++way) {
      const int from = way == 0 ? rank : peer, to = way == 0 ? peer : rank;
      // The source's pieces are in the order of ranks with gaps, the destination's in the opposite order.
      const std::size_t offset = step * static_cast<std::size_t>(way == 0 ? peer : size - 1 - peer) + round % 3;
      counts[way].push_back(count(from, to)), offsets[way].push_back(offset);
      for (std::size_t i = 0; i < count(from, to); ++i) (way == 0 ? sent : expected)[offset + i] = element(from, to, i);
    }
  }
  world.copy(source, sent.data(), room * sizeof(Element));
  GuardedArea to(test, elsewhere.destination_or(reinterpret_cast<std::byte*>(heap_destination.data())), 0,
                 room * sizeof(Element));
  const std::vector<Algorithm> all = algorithms_here(world, Operation::alltoallv);
  const CollectiveCall how{.algorithm = all[round % all.size()], .blocks = 1 + unsigned(round % 3)};
  collectives.alltoallv_on_stream(to.data(), source, {counts[0], offsets[0], counts[1], offsets[1]},
                                  ElementType::float16, how);
  world.synchronize();
  const auto* bytes = reinterpret_cast<const std::byte*>(expected.data());
  to.check({bytes, bytes + room * sizeof(Element)}, join("alltoallv by ", name(how.algorithm), ", round ", round));
}

BEELINE_CASE(collectives, movement_of_varied_counts, 1) {
  Collectives collectives(test.world(), small_channel);
  for (std::uint64_t round = 1; round <= 24; ++round)
    check_varied(test, collectives, round, 700, [&](int from, int to) { return varied_count(round, from, to); });
}

/// The member that receives less than others has its destination outside the heap; then all sources are there.
BEELINE_CASE(collectives, varied_movement_of_other_memory, 2) {
  Collectives collectives(test.world(), small_channel);
  const std::size_t room = (static_cast<std::size_t>(test.size()) * 20003 + 128) * 2;
  const ForeignMemory source(test, room), destination(test, room);
  for (std::uint64_t round = 1; round <= 8; ++round) {
    const int other = static_cast<int>(round) % test.size();
    const auto count = [&](int, int to) { return std::size_t{to == other ? (round < 5 ? 1000u : 3u) : 20000u}; };
    check_varied(test, collectives, round, 20000, count,
                 {round % 2 == 0 ? source.data() : nullptr, test.rank() == other ? destination.data() : nullptr});
  }
}

/// Pieces so long that sessions share the work of a member's piece to itself.
BEELINE_CASE(collectives, movement_of_long_pieces, 1) {
  constexpr unsigned blocks = 3;
  constexpr std::size_t bytes = blocks * detail::selection::least_paired_bytes + 33;
  Collectives collectives(test.world(), {.sessions = blocks, .packet_bytes = 16384, .staging_bytes = 65536});
  StreamCall call(test, collectives, static_cast<std::size_t>(test.size()) * bytes);
  std::uint64_t round = 0;
  for_each_way(test.world(), [&](Operation move, Algorithm algorithm) {
    call.check({move, ++round, test.size(), 0, bytes}, {0, 16, false}, call_by(algorithm, blocks));
  });
  for (round = 2; round < (under_thread_sanitizer ? 5u : 12u); round += 3)  // of three blocks each
    check_varied(test, collectives, round, bytes,
                 [&](int from, int to) { return from == to ? bytes / 2 + 1 : varied_count(round, from, to) * 100; });
}

BEELINE_CASE(collectives, movement_in_two_teams, 2) {
  World& world = test.world();
  std::uint64_t teams = 0;
  for (const std::vector<int>& members : {test.alternate_ranks(), test.all_but_one()}) {
    const std::unique_ptr<Team> team = world.make_team(members);
    // Each team has rounds of its own: its members were in different teams before, which had different algorithms.
    std::uint64_t round = 1000 * teams++;
    Collectives collectives(*team, small_channel);
    StreamCall call(test, collectives, static_cast<std::size_t>(test.size()) * 1001);
    for_each_way(*team, [&](Operation move, Algorithm algorithm) {
      for (int i = 0; i < 3; ++i)
        call.check({move, ++round, team->size(), i % team->size(), 1001}, {0, 0, false}, {.algorithm = algorithm});
    });
    world.barrier();
  }
}

struct KernelArguments {
  CollectiveChannel channel;
  std::uint32_t* vectors;  ///< [2, ranks, count] input and output
  std::uint64_t* waiting;  ///< [ranks] at the late rank: the last round in which each other rank timed out
  std::size_t* lengths;    ///< [3, ranks] lengths sent and received by all-to-all-v, and offsets
  std::uint32_t count, rounds;
  bool some_are_late;
};

/// Rounds of all operations and algorithms on one session that stays open; one member may be late: it calls when all
/// others that must wait for it have timed out.
struct OpenSessionKernel {
  static constexpr unsigned max_threads = 128;
  static constexpr std::size_t shared_bytes = sizeof(BulkBuffer);
  /// All operations that move data, in as many algorithms.
  static constexpr std::uint32_t operations = std::popcount(moves | set_of(Operation::alltoallv)),
                                 ways = 4 * operations;

  BEELINE_HOST_DEVICE static Operation operation_of(std::uint32_t round) {
    constexpr auto all = [] {
      struct {
        Operation at[operations];
      } list{};
      std::uint32_t count = 0;
      for (const CollectiveShape& shape : collective_shapes)
        if (!shape.reduces) list.at[count++] = shape.operation;
      return list;
    }();
    return all.at[round % operations];
  }

  BEELINE_HOST_DEVICE static std::uint32_t value(std::uint32_t round, std::uint32_t from, std::uint32_t part) {
    return round * 100000 + from * 1000 + part;
  }
  /// Lines are only for all-gather and all-to-all, if the channel has any; other calls use packets instead.
  BEELINE_HOST_DEVICE static Algorithm algorithm_of(std::uint32_t round, const Context& ctx,
                                                    const CollectiveChannel& channel) {
    if (channel.across != nullptr) return Algorithm::automatic;
    if (ctx.mixed) return Algorithm::ll;
    constexpr Algorithm all[] = {Algorithm::ll, Algorithm::peer, Algorithm::bulk, Algorithm::ll128};
    const Algorithm algorithm = all[round / operations % 4];
    constexpr Operations of_lines =
        operations_where([](const CollectiveShape& shape) { return shape.moves_all() && !shape.varies; });
    const bool has_lines = channel.area_lines != 0 && contains(of_lines, operation_of(round));
    return algorithm == Algorithm::ll128 && !has_lines ? Algorithm::ll : algorithm;
  }
  /// Elements that all-to-all-v moves: some pieces are empty.
  BEELINE_HOST_DEVICE static std::uint32_t length(std::uint32_t round, std::uint32_t from, std::uint32_t to,
                                                  std::uint32_t count) {
    return count * ((round + from + 2 * to) % 4) / 3;
  }

  template <class Session>
  BEELINE_HOST_DEVICE static Status call(Session& session, std::uint32_t round, std::uint32_t* out,
                                         const std::uint32_t* in, const KernelArguments& a) {
    const Context& ctx = session.context();
    const std::uint32_t root = round % ctx.size;
    const SessionCall how{a.some_are_late ? Timeout{50'000} : Timeout::none(), algorithm_of(round, ctx, a.channel),
                          bulk_buffer()};
    const std::size_t* const offsets = a.lengths + 2 * ctx.size;
    if (operation_of(round) == Operation::alltoallv)
      return alltoallv(session, out, in, PieceTable{a.lengths, offsets, a.lengths + ctx.size, offsets}, how);
    return move_elements(session, operation_of(round), out, in, a.count, how, root);
  }

  /// Fills in the data that the next call moves.
  template <class Group>
  BEELINE_HOST_DEVICE static void fill(const Group& group, const Context& ctx, std::uint32_t round,
                                       const KernelArguments& a) {
    for (std::uint32_t i = group.thread_rank(); i < ctx.size * a.count; i += group.size())
      a.vectors[i] = value(round, ctx.rank, i / a.count) + i % a.count;
    for (std::uint32_t peer = group.thread_rank(); peer < ctx.size; peer += group.size()) {
      a.lengths[peer] = length(round, ctx.rank, peer, a.count);
      a.lengths[ctx.size + peer] = length(round, peer, ctx.rank, a.count);
      a.lengths[2 * ctx.size + peer] = peer * a.count;
    }
    group.sync();
  }

  template <class Group>
  BEELINE_HOST_DEVICE static void check(const Group& group, const Context& ctx, DeviceReport* report,
                                        std::uint32_t round, const std::uint32_t* out, std::uint32_t count) {
    const std::uint32_t root = round % ctx.size;
    const Operation operation = operation_of(round);
    const bool collects = contains(detail::piecewise_receives, operation),
               has_parts = contains(detail::piecewise_sends, operation);
    if (contains(detail::receives_of_root, operation) && ctx.rank != root) return;
    for (std::uint32_t from = 0; from < (collects ? ctx.size : 1); ++from) {
      const std::uint32_t some = operation == Operation::alltoallv ? length(round, from, ctx.rank, count) : count;
      for (std::uint32_t i = group.thread_rank(); i < some; i += group.size())
        BEELINE_DEVICE_CHECK_EQ(report, value(round, collects ? from : root, has_parts ? ctx.rank : 0) + i,
                                out[from * count + i]);
    }
  }

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, KernelArguments a) const {
    const auto& block = grid.block();
    std::uint32_t* in = a.vectors;
    std::uint32_t* out = in + std::size_t{ctx.size} * a.count;
    Session session(block, ctx, a.channel);
    for (std::uint32_t round = 1; round <= a.rounds; ++round) {
      fill(block, ctx, round, a);
      const std::uint32_t late = (round / operations) % ctx.size;
      const bool some_wait = a.some_are_late && waits_for_all(round, late, ctx, a.channel);
      if (some_wait && ctx.rank == late)
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait_for_others(block, ctx, a.waiting, round));
      bool told = !some_wait || ctx.rank == late;
      Status status = Status::timeout;
      while (status == Status::timeout) {
        status = call(session, round, out, in, a);
        if (status == Status::timeout && !told) {
          tell_latecomer(block, ctx, a.waiting, round, late);
          told = true;
        }
      }
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
      check(block, ctx, report, round, out, a.count);
      block.sync();
    }
  }

  /// Whether every other member's call waits for `late`: in packets from one or to one, only receivers wait.
  BEELINE_HOST_DEVICE static bool waits_for_all(std::uint32_t round, std::uint32_t late, const Context& ctx,
                                                const CollectiveChannel& channel) {
    const bool is_root = round % ctx.size == late;
    return !detail::has_root(operation_of(round)) || algorithm_of(round, ctx, channel) != Algorithm::ll ||
           (contains(detail::sends_of_root, operation_of(round)) && is_root);
  }
};

void run_lanes(RankTest& test, const CollectiveOptions& options, bool some_are_late) {
  World& world = test.world();
  Collectives collectives(world, options);
  const std::uint32_t rounds = OpenSessionKernel::ways * (some_are_late ? 2 : under_thread_sanitizer ? 1 : 6);
  for (const std::uint32_t count : {1u, 501u, 1101u}) {  // with 1101 elements a broadcast is relayed
    const SymmetricArray<std::uint32_t> vectors(world, 2 * static_cast<std::size_t>(test.size()) * count);
    const SymmetricArray<std::uint64_t> waiting(world, max_ranks, test.common_heap());
    const SymmetricArray<std::size_t> lengths(world, 3 * static_cast<std::size_t>(test.size()));
    const KernelArguments arguments{
        collectives.channel(), vectors.data(), waiting.data(), lengths.data(), count, rounds, some_are_late};
    test.run(test.shape(1, true), OpenSessionKernel{}, arguments,
             join(count, " elements in kernels", some_are_late ? ", some late" : ""));
  }
}

BEELINE_CASE(sessions, movement_in_kernels, 1) { run_lanes(test, small_channel, false); }

BEELINE_CASE(sessions_across_nodes, movement_continues_after_a_timeout, 2) { run_lanes(test, small_channel, true); }

BEELINE_CASE(collectives, movement_refused, 1) {
  Collectives collectives(test.world(), small_channel);
  const SymmetricArray<float> vector(test.world(), 1024);
  float* data = vector.data();
  constexpr auto f32 = ElementType::float32;
  const int size = test.size();
  const auto parts = static_cast<std::size_t>(size);
  expect_refused("root -1 of", [&] { collectives.broadcast_on_stream(data, data, 4, f32, -1); });
  expect_refused(join("root ", size, " of").c_str(), [&] { collectives.gather_on_stream(data, data, 4, f32, size); });
  expect_refused("null pointer", [&] { collectives.allgather_on_stream(nullptr, data, 4, f32); });
  expect_refused("null pointer", [&] { collectives.scatter_on_stream(nullptr, data, 4, f32, 0); });
  expect_refused("not aligned",
                 [&] { collectives.alltoall_on_stream(reinterpret_cast<std::byte*>(data) + 2, data + 512, 4, f32); });
  expect_refused("overlap", [&] { collectives.alltoall_on_stream(data, data, 4, f32); });
  expect_refused("overlap", [&] { collectives.allgather_on_stream(data, data + 1, 4, f32); });
  expect_refused("more than an address space", [&] { collectives.allgather_on_stream(data, data, SIZE_MAX / 4, f32); });
  expect_refused("element type 9",
                 [&] { collectives.broadcast_on_stream(data, data, 4, static_cast<ElementType>(9), 0); });
  expect_refused("no algorithm tree",
                 [&] { collectives.alltoall_on_stream(data, data + 512, 4, f32, {.algorithm = Algorithm::tree}); });
  expect_refused("no algorithm copy_engine",
                 [&] { collectives.gather_on_stream(data, data, 4, f32, 0, {.algorithm = Algorithm::copy_engine}); });
  expect_refused("copy_engine: 2 blocks were asked for, and engines have none", [&] {
    collectives.alltoall_on_stream(data, data + 512, 4, f32, {.algorithm = Algorithm::copy_engine, .blocks = 2});
  });
  expect_refused("4 blocks on a channel of 3 sessions",
                 [&] { collectives.alltoall_on_stream(data, data + 512, 4, f32, {.blocks = 4}); });
  const std::vector<std::size_t> few(parts + 1, 1), right(parts, 1), other(parts, 2);
  expect_refused("counts or offsets for a team", [&] {
    collectives.alltoallv_on_stream(data, data + 512, {few, right, right, right}, f32);
  });
  expect_refused("to itself", [&] {
    collectives.alltoallv_on_stream(data, data + 512, {right, right, other, right}, f32);
  });
  if (!test.world().mixed()) {
    std::vector<float> outside(4 * parts);
    expect_refused(test.on_several_nodes() ? "across_nodes serves" : "allgather: destination ", [&] {
      collectives.allgather_on_stream(outside.data(), data, 4, f32,
                                      {.algorithm = Algorithm::copy_engine, .symmetric = true});
    });
  }
}

/// Many ranks on few cores, one call each.
BEELINE_CASE(crowded_collectives, crowded_movement, 1) {
  Collectives collectives(test.world(), {.sessions = 1, .packet_bytes = 64, .staging_bytes = 1024});
  StreamCall call(test, collectives, static_cast<std::size_t>(test.size()) * 99);
  std::uint64_t round = 0;
  for (const Algorithm algorithm : {Algorithm::ll, Algorithm::peer}) {
    call.check({Operation::alltoall, ++round, test.size(), 0, 99}, {0, 0, false}, {.algorithm = algorithm});
    call.check({Operation::gather, ++round, test.size(), 5, 9}, {1, 0, false}, {.algorithm = algorithm});
  }
}

/// Default options suit any number of ranks.
BEELINE_CASE(crowded_collectives, options_of_a_crowd, 1) {
  Collectives collectives(test.world());
  StreamCall call(test, collectives, static_cast<std::size_t>(test.size()) * 99);
  call.check({Operation::alltoall, 1, test.size(), 0, 99}, {0, 0, false}, {.algorithm = Algorithm::ll});
}

}  // namespace

}  // namespace beeline_test::movement_cases
