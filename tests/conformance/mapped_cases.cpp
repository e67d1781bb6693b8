// SPDX-License-Identifier: Apache-2.0
// Collectives of vectors in ordinary memory, which the ranks map for each other after its first use.
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "beeline/collectives/impl/session_wait.hpp"
#include "beeline/host/collectives.hpp"
#include "beeline/selection/preferences.hpp"
#include "tests/conformance/collective_calls.hpp"
#include "tests/conformance/foreign_memory.hpp"
#include "tests/conformance/rank_test.hpp"

namespace beeline_test::mapped_cases {

namespace {

using namespace beeline;
namespace selection = detail::selection;
using Element = std::int32_t;

constexpr std::size_t most = 70'001;              // elements of a vector, or of a piece
constexpr std::size_t longest_in_packets = 2000;  // elements: packets may carry shorter pieces of an all-to-all-v
constexpr int calls_until_known = 3;  // the first call publishes each member's segments, the second maps them

bool are_one_process(World& world) {
  const pid_t mine = getpid();
  for (const auto& theirs : world.allgather(std::as_bytes(std::span(&mine, 1))))
    if (std::memcmp(theirs.data(), &mine, sizeof mine) != 0) return false;
  return true;
}

/// A channel for one team's calls, and checks of the results on this rank.
class MappedCalls {
 public:
  ///   mappings  nullptr: members do not map each other's vectors
  ///   longest   elements of a vector, or of a piece
  MappedCalls(RankTest& test, Team& team, SegmentMappings* mappings, std::size_t longest = most)
      : test_(test), team_(team), mappings_(mappings), longest_(longest),
        collectives_(team, {.packet_bytes = 256, .staging_bytes = 4096}) {}

  /// Runs every operation once, on vectors at `memory`; all members' memory has room for `words()` elements.
  ///   shift  elements between the memory's start and the vectors; it differs among the ranks
  void check(std::byte* memory, std::size_t count, std::size_t shift, std::optional<Transfer> expected) {
    check(memory, count, shift, expected, expected);
  }
  ///   in_part  expected of calls that use some members' vectors only or whose pieces differ; empty: any
  void check(std::byte* memory, std::size_t count, std::size_t shift, std::optional<Transfer> expected,
             std::optional<Transfer> in_part) {
    auto* const source = reinterpret_cast<Element*>(memory) + shift;
    Element* const destination = source + words() / 2;
    const auto pieces = count * static_cast<std::size_t>(team_.size());
    check_allreduce(source, destination, count, expected);
    run(
        source, pieces, destination, count,
        [&](const CollectiveCall& call) {
          collectives_.reduce_scatter_on_stream(destination, source, count, ElementType::int32, Reduction::maximum,
                                                call);
        },
        Algorithm::read,
        [&](std::size_t i) {
          return (team_.size() - 1) * 1000 + static_cast<int>(i + count * static_cast<std::size_t>(team_.rank()));
        },
        expected);
    run(
        source, count, destination, pieces,
        [&](const CollectiveCall& call) {
          collectives_.allgather_on_stream(destination, source, count, ElementType::int32, call);
        },
        Algorithm::peer, [&](std::size_t i) { return static_cast<int>(i / count * 1000 + i % count); }, expected);
    run(
        source, pieces, destination, pieces,
        [&](const CollectiveCall& call) {
          collectives_.alltoall_on_stream(destination, source, count, ElementType::int32, call);
        },
        Algorithm::peer,
        [&](std::size_t i) {
          return static_cast<int>(i / count * 1000 + i % count + count * static_cast<std::size_t>(team_.rank()));
        },
        expected);
    check_moved_by_root(source, destination, count, in_part);
    check_reduce(source, destination, count, in_part);
    check_varied(source, destination, count, in_part);
  }

  /// Runs only an all-reduce of the vectors that `check` uses, out of place and in place.
  void check_allreduce(std::byte* memory, std::size_t count, std::size_t shift, std::optional<Transfer> expected) {
    auto* const source = reinterpret_cast<Element*>(memory) + shift;
    check_allreduce(source, source + words() / 2, count, expected);
    check_allreduce(source, source, count, expected);
  }

  /// Runs each operation that moves data from or to a root once: other members use only the root's vectors.
  void check_moved_by_root(std::byte* memory, std::size_t count, std::optional<Transfer> expected) {
    auto* const source = reinterpret_cast<Element*>(memory);
    check_moved_by_root(source, source + words() / 2, count, expected);
  }

  /// Runs only a broadcast, out of place and in place.
  void check_broadcast(std::byte* memory, std::size_t count, std::size_t shift, std::optional<Transfer> expected) {
    auto* const source = reinterpret_cast<Element*>(memory) + shift;
    check_broadcast(source, source + words() / 2, count, expected);
    check_broadcast(source, source, count, expected);
  }

  /// Whether this rank's calls are `CollectiveCall::overlapped`.
  bool overlapped = false;

  /// Elements of memory that the largest calls use, and a margin.
  [[nodiscard]] std::size_t words() const { return 2 * (longest_ * static_cast<std::size_t>(team_.size()) + 64); }

 private:
  void check_allreduce(Element* source, Element* destination, std::size_t count, std::optional<Transfer> expected) {
    const int sum = team_.size() * (team_.size() - 1) / 2 * 1000;
    run(
        source, count, destination, count,
        [&](const CollectiveCall& call) {
          collectives_.allreduce_on_stream(destination, source, count, ElementType::int32, Reduction::sum, call);
        },
        Algorithm::two_shot, [&](std::size_t i) { return sum + static_cast<int>(i) * team_.size(); }, expected);
  }

  [[nodiscard]] int root_of(std::size_t count) const { return static_cast<int>(count) % team_.size(); }

  void check_moved_by_root(Element* source, Element* destination, std::size_t count, std::optional<Transfer> expected) {
    const int root = root_of(count);
    const bool is_root = team_.rank() == root;
    const auto pieces = count * static_cast<std::size_t>(team_.size());
    check_broadcast(source, destination, count, expected);
    run(
        source, is_root ? pieces : 0, destination, count,
        [&](const CollectiveCall& call) {
          collectives_.scatter_on_stream(destination, source, count, ElementType::int32, root, call);
        },
        Algorithm::peer,
        [&](std::size_t i) {
          return root * 1000 + static_cast<int>(i + count * static_cast<std::size_t>(team_.rank()));
        },
        expected);
    run(
        source, count, destination, is_root ? pieces : 0,
        [&](const CollectiveCall& call) {
          collectives_.gather_on_stream(destination, source, count, ElementType::int32, root, call);
        },
        Algorithm::peer, [&](std::size_t i) { return static_cast<int>(i / count * 1000 + i % count); }, expected);
  }

  void check_broadcast(Element* source, Element* destination, std::size_t count, std::optional<Transfer> expected) {
    const int root = root_of(count);
    run(
        source, root == team_.rank() ? count : 0, destination, count,
        [&](const CollectiveCall& call) {
          collectives_.broadcast_on_stream(destination, source, count, ElementType::int32, root, call);
        },
        Algorithm::peer, [&](std::size_t i) { return root * 1000 + static_cast<int>(i); }, expected);
  }

  void check_reduce(Element* source, Element* destination, std::size_t count, std::optional<Transfer> expected) {
    const int root = root_of(count);
    run(
        source, count, destination, root == team_.rank() ? count : 0,
        [&](const CollectiveCall& call) {
          collectives_.reduce_on_stream(destination, source, count, ElementType::int32, Reduction::minimum, root, call);
        },
        Algorithm::two_shot, [&](std::size_t i) { return static_cast<int>(i); }, expected);
  }

  /// All-to-all-v of pieces up to two elements shorter than `count`; each piece starts at a multiple of `count`.
  void check_varied(Element* source, Element* destination, std::size_t count, std::optional<Transfer> expected) {
    const auto members = static_cast<std::size_t>(team_.size()), rank = static_cast<std::size_t>(team_.rank());
    const auto length = [&](std::size_t from, std::size_t to) { return count < 3 ? count : count - (from + to) % 3; };
    std::vector<std::size_t> lengths, offsets;  // the same for sending and receiving
    for (std::size_t peer = 0; peer < members; ++peer)
      lengths.push_back(length(rank, peer)), offsets.push_back(count * peer);
    run(
        source, count * members, destination, count * members,
        [&](const CollectiveCall& call) {
          collectives_.alltoallv_on_stream(destination, source, {lengths, offsets, lengths, offsets},
                                           ElementType::int32, call);
        },
        Algorithm::peer,
        [&](std::size_t i) {
          const std::size_t from = i / count, element = i % count;
          return element < length(from, rank) ? static_cast<int>(from * 1000 + count * rank + element) : -1;
        },
        count > longest_in_packets ? expected : std::nullopt);
  }

  template <class Call, class Expected>
  void run(Element* source, std::size_t sent, Element* destination, std::size_t received, const Call& call,
           Algorithm algorithm, const Expected& expected, std::optional<Transfer> transfer) {
    std::vector<Element> data(sent);
    for (std::size_t i = 0; i < sent; ++i) data[i] = team_.rank() * 1000 + static_cast<int>(i);
    World& world = test_.world();
    world.copy(source, data.data(), sent * sizeof(Element));
    if (destination != source)
      world.copy(destination, std::vector<Element>(received, -1).data(), received * sizeof(Element));
    call({.algorithm = algorithm, .mappings = mappings_, .overlapped = overlapped});
    world.synchronize();
    data.resize(received);
    world.copy(data.data(), destination, received * sizeof(Element));
    for (std::size_t i = 0; i < received; ++i) BEELINE_CHECK_EQ(expected(i), data[i]);
    if (transfer) BEELINE_CHECK_EQ(std::string(name(*transfer)), name(collectives_.last_transfer()));
  }

  RankTest& test_;
  Team& team_;
  SegmentMappings* mappings_;
  std::size_t longest_;
  Collectives collectives_;
};

void skip_unsuitable(RankTest& test) {
  test.skip_if(test.on_several_nodes(), ranks_on_several_nodes);
  test.skip_if(test.world().mixed(), "kernels do not reach memory of the other kind");
  test.skip_if(test.size() > static_cast<int>(detail::most_mapping_members), "too many ranks");
}

std::size_t shift_of(const RankTest& test, std::size_t step) { return step * static_cast<std::size_t>(test.rank()); }

/// Vectors at different offsets, aligned and not, are registered with all members; vectors in the heap need no mapping.
BEELINE_CASE(collectives, mapped_vectors, 2) {
  skip_unsuitable(test);
  SegmentMappings mappings(test.world());
  const Transfer known = test.on_gpu() || are_one_process(test.world()) ? Transfer::registered : Transfer::staged;
  MappedCalls calls(test, test.world(), &mappings);
  const ForeignMemory memory(test, calls.words() * sizeof(Element));
  for (int call = 0; call < calls_until_known; ++call) {
    calls.check(memory.data(), 1000, shift_of(test, 4), {});
    test.world().barrier();
  }
  for (const std::size_t step : {0, 1, 4})
    for (const std::size_t count : {std::size_t{1}, std::size_t{257}, most})
      calls.check(memory.data(), count, shift_of(test, step), known);
  BEELINE_CHECK_EQ(std::string(known == Transfer::registered ? "" : "private memory of another process"),
                   mappings.reason());
  const SymmetricArray<Element> heap(test.world(), calls.words());
  calls.check(reinterpret_cast<std::byte*>(heap.data()), 1000, shift_of(test, 4), Transfer::in_place);
}

/// Long vectors are sent in parts to the members that reduce them, here in hundreds of chunks: mapped vectors,
/// symmetric vectors in the heap, and vectors that members cannot reach.
BEELINE_CASE(collectives, mapped_vectors_in_chunks, 2) {
  skip_unsuitable(test);
  test.skip_if(!test.on_gpu(), "host ranks read what they combine, however long it is");
  constexpr std::size_t least = selection::least_pushed_bytes / sizeof(Element);
  SegmentMappings mappings(test.world());
  MappedCalls calls(test, test.world(), &mappings, least + 1001);
  const ForeignMemory memory(test, calls.words() * sizeof(Element));
  for (int call = 0; call < calls_until_known; ++call) {
    calls.check_allreduce(memory.data(), least, shift_of(test, 4), {});
    test.world().barrier();
  }
  const SymmetricArray<Element> heap(test.world(), calls.words());
  for (const std::size_t count : {least - 1, least, least + 1, least + 999}) {
    calls.check_allreduce(memory.data(), count, shift_of(test, count % 2 == 0 ? 4 : 1), Transfer::registered);
    calls.check_allreduce(reinterpret_cast<std::byte*>(heap.data()), count, 0, Transfer::in_place);
  }
  MappedCalls staged(test, test.world(), nullptr, least + 1001);
  for (const std::size_t count : {least, least + 1, least + 999})
    staged.check_allreduce(memory.data(), count, shift_of(test, count % 2 == 0 ? 4 : 1), Transfer::staged);
}

/// The longest broadcasts among three or more members go along a chain, whether the vectors are aligned or not.
BEELINE_CASE(collectives, mapped_broadcast_along_a_chain, 3) {
  skip_unsuitable(test);
  test.skip_if(!test.on_gpu(), "host ranks send parts, however long the vector is");
  constexpr std::size_t least = selection::relay_of_gpus.least_chained / sizeof(Element);
  SegmentMappings mappings(test.world());
  // The memory holds 2 * `size` vectors of the length given here. These calls use one, so it may be longer.
  MappedCalls calls(test, test.world(), &mappings, (least + 2001) / static_cast<std::size_t>(test.size()) + 1);
  const ForeignMemory memory(test, calls.words() * sizeof(Element));
  for (int call = 0; call < calls_until_known; ++call) {
    calls.check_broadcast(memory.data(), 1000, 0, {});
    test.world().barrier();
  }
  calls.check_broadcast(memory.data(), least, 0, Transfer::registered);
  calls.check_broadcast(memory.data(), least + 1001, shift_of(test, 1), Transfer::registered);
}

/// Long calls for which one member, all or none wait before their grids start, also when one arrives after that wait
/// has ended.
BEELINE_CASE(collectives, overlapped_calls, 2) {
  skip_unsuitable(test);
  test.skip_if(!test.on_gpu(), "calls of host ranks take no multiprocessors");
  constexpr std::size_t longest = selection::least_pushed_bytes / sizeof(Element) + 5;
  SegmentMappings mappings(test.world());
  for (SegmentMappings* const used : {&mappings, static_cast<SegmentMappings*>(nullptr)}) {
    MappedCalls calls(test, test.world(), used, longest);
    const ForeignMemory memory(test, calls.words() * sizeof(Element));
    for (int turn = 0; turn < 4; ++turn) {
      calls.overlapped = turn == 3 || turn == test.rank();
      calls.check(memory.data(), selection::least_overlapped_bytes / sizeof(Element), shift_of(test, 4), {});
      calls.check(memory.data(), selection::least_drawn_piece_bytes / sizeof(Element) + 1001, shift_of(test, 1), {});
      if (test.rank() == turn) std::this_thread::sleep_for(std::chrono::nanoseconds(3 * selection::arrival_limit_ns));
      calls.check_allreduce(memory.data(), longest, shift_of(test, 4), {});
    }
  }
}

/// The grid of an overlapped call does not start before the other members have called.
BEELINE_CASE(collectives, overlapped_grids_start_late, 2) {
  skip_unsuitable(test);
  test.skip_if(!test.on_gpu(), "calls of host ranks take no multiprocessors");
  constexpr std::size_t count = selection::least_overlapped_bytes / sizeof(Element);
  World& world = test.world();
  Collectives collectives(world);
  const SymmetricArray<Element> vector(world, count);
  const auto stream = world.make_stream();
  const auto call = [&] {
    collectives.allreduce_on_stream(vector.data(), vector.data(), count, ElementType::int32, Reduction::maximum,
                                    {.stream = stream.get(), .overlapped = true});
  };
  const auto state = [&] {
    SessionState copy;
    world.copy(&copy, collectives.channel().states, sizeof copy);
    return copy;
  };
  if (test.rank() == 0) {
    const auto start = std::chrono::steady_clock::now();
    const auto is_early = [&] {
      return std::chrono::steady_clock::now() - start < std::chrono::nanoseconds(selection::arrival_limit_ns / 2);
    };
    call();
    SessionState seen = state();
    while (is_early() && seen.reached == 0) seen = state();
    if (is_early()) {
      BEELINE_CHECK(seen.reached != 0);
      BEELINE_CHECK(detail::last_call(&seen) != seen.reached);
    }
    world.barrier();
  } else {
    world.barrier();
    call();
  }
  world.synchronize();
}

/// Repeatedly, a segment is freed and another one is allocated at its address or elsewhere.
BEELINE_CASE(collectives, mapped_segments_come_and_go, 2) {
  skip_unsuitable(test);
  SegmentMappings mappings(test.world());
  MappedCalls calls(test, test.world(), &mappings);
  for (int turn = 0; turn < 6; ++turn) {
    const ForeignMemory memory(test, calls.words() * sizeof(Element) << turn % 2);
    for (int call = 0; call < calls_until_known; ++call) calls.check(memory.data(), 3001, shift_of(test, 4), {});
  }
}

/// If one rank's memory cannot be mapped, the vectors of all ranks go through the channel's memory.
BEELINE_CASE(collectives, mapped_on_all_or_none, 2) {
  skip_unsuitable(test);
  test.skip_if(!test.on_gpu(), "host ranks map all memory of their process");
  SegmentMappings mappings(test.world());
  MappedCalls calls(test, test.world(), &mappings);
  const Origin origin = test.rank() == 0 ? Origin::cuda_pinned : Origin::cuda_device;
  const ForeignMemory memory(test, calls.words() * sizeof(Element), origin);
  constexpr std::size_t root_0 = 3360;  // elements: with this count the root is rank 0 in teams of up to 8
  for (int call = 0; call < calls_until_known; ++call) calls.check(memory.data(), root_0, 0, Transfer::staged, {});
  if (test.rank() == 0) BEELINE_CHECK_EQ(std::string("it is in no allocation of this GPU's memory"), mappings.reason());
  // The vectors of a root other than rank 0 are in memory that can be mapped.
  calls.check_moved_by_root(memory.data(), root_0 + 1, Transfer::registered);
}

/// Memory that cannot be shared with other processes, as on a machine without CUDA IPC.
class UnsharedMemory final : public SegmentMemory {
 public:
  [[nodiscard]] std::uint64_t id_at(std::uintptr_t) const override { return 1; }
  [[nodiscard]] Segment segment_at(std::uintptr_t) const override { return {1, ~std::size_t{0} >> 1, 1}; }
  [[nodiscard]] Handle share(std::uintptr_t) const override {
    throw Error(Status::unavailable, "no CUDA IPC in this container");
  }
  [[nodiscard]] std::uintptr_t open(int, std::uintptr_t, const Handle&) override { return 0; }
  void close(int, std::uintptr_t) override {}
};

/// If no memory can be shared, results of calls are right, and `reason()` says why the calls are staged.
BEELINE_CASE(collectives, mapped_without_ipc, 2) {
  skip_unsuitable(test);
  SegmentMappings mappings(test.world(), std::make_unique<UnsharedMemory>());
  MappedCalls calls(test, test.world(), &mappings);
  const ForeignMemory memory(test, calls.words() * sizeof(Element));
  for (int call = 0; call < calls_until_known; ++call) calls.check(memory.data(), 3360, 0, Transfer::staged, {});
  BEELINE_CHECK_CONTAINS(mappings.reason(), "no CUDA IPC in this container");
}

/// A team's calls use the mappings of the world, although ranks outside the team take no part.
BEELINE_CASE(collectives, mapped_in_teams, 4) {
  skip_unsuitable(test);
  SegmentMappings mappings(test.world());
  const Transfer known = test.on_gpu() || are_one_process(test.world()) ? Transfer::registered : Transfer::staged;
  const auto team = test.world().make_team(test.alternate_ranks());
  MappedCalls calls(test, *team, &mappings);
  const ForeignMemory memory(test, calls.words() * sizeof(Element));
  for (int call = 0; call < calls_until_known; ++call) {
    calls.check(memory.data(), 1000, shift_of(test, 4), {});
    test.world().barrier();
  }
  calls.check(memory.data(), 5003, shift_of(test, 4), known);
}

}  // namespace

}  // namespace beeline_test::mapped_cases
