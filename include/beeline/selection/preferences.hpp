// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which of the methods that are possible (core/registry.hpp) is taken, with how many blocks, and in pieces of which
/// size: by tables, of which the first row that fits holds. No other file prefers anything by size.
///
/// Sizes of GPUs are those at which the methods' times cross on H200 (bench/records), with two members and with four.

#include <iterator>

#include "beeline/core/registry.hpp"
#include "beeline/device/impl/caller_check.hpp"

namespace beeline {

/// What a choice follows from. All members know the same.
struct Situation {
  std::uint32_t members = 1;
  bool on_hosts = false;         ///< what makes the call, or any rank of its world, runs on CPU threads
  bool mixed = false;            ///< members of both kinds
  bool several_nodes = false;    ///< members on several nodes
  bool has_lines = false;        ///< GPUs that exchange packets of 128 bytes
  bool has_engines = false;      ///< copy engines may be taken
  bool knows_symmetric = false;  ///< the caller asserts that vectors are
};

namespace detail::selection {

/// Which teams a row is for.
enum class Members : std::uint8_t {
  any,
  hosts,
  mixed,
  gpus,
  two_gpus,
  not_two_gpus,
  gpus_with_lines,
  two_gpus_with_lines,
  several_nodes
};

[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool is_for(Members members, const Situation& here) {
  const bool gpus = !here.on_hosts && !here.mixed, two = here.members == 2;
  switch (members) {
    case Members::any:
      return true;
    case Members::hosts:
      return here.on_hosts && !here.mixed;
    case Members::mixed:
      return here.mixed;
    case Members::gpus:
      return gpus;
    case Members::two_gpus:
      return gpus && two;
    case Members::not_two_gpus:
      return gpus && !two;
    case Members::gpus_with_lines:
      return gpus && here.has_lines;
    case Members::two_gpus_with_lines:
      return gpus && here.has_lines && two;
    case Members::several_nodes:
      return here.several_nodes;
  }
  return false;
}

inline constexpr std::size_t kib = 1024, mib = kib * kib;

inline constexpr Operations
    varied = operations_where([](const CollectiveShape&shape) { return shape.varies; }),
    rooted = operations_where([](const CollectiveShape&shape) { return shape.has_root() && !shape.reduces; }) & ~varied,
    all_to_all = operations_where([](const CollectiveShape&shape) { return shape.moves_all(); }) & ~varied,
    moves = rooted | all_to_all, allreduce_only = set_of(Operation::allreduce), reduce_only = set_of(Operation::reduce),
    reduce_scatter_only = set_of(Operation::reduce_scatter), reductions_to_some = reduce_only | reduce_scatter_only;

/// Up to which size a row holds. In kernels of a program's own the vectors are those of one session.
struct UpTo {
  std::size_t bytes = ~std::size_t{0};    ///< of the vector, or of the piece from one to another
  std::size_t traffic = ~std::size_t{0};  ///< of it to all other members
  std::size_t in_all = ~std::size_t{0};   ///< of all members' vectors
};

enum class Vectors : std::uint8_t { any, known_symmetric, not_known };

struct Preference {
  Operations operations;
  Members members;
  UpTo up_to;
  Algorithm algorithm;
  Vectors vectors = Vectors::any;
};

/// For calls on streams.
inline constexpr Preference on_streams[] = {
    {allreduce_only | moves | varied | reductions_to_some, Members::several_nodes, {}, Algorithm::across_nodes},

    {allreduce_only, Members::mixed, {.traffic = 2 * kib}, Algorithm::ll_one_shot},
    {allreduce_only, Members::mixed, {}, Algorithm::ll_two_shot},
    {allreduce_only, Members::hosts, {.bytes = 1 * kib, .in_all = 16 * kib}, Algorithm::ll_one_shot},
    {allreduce_only, Members::hosts, {}, Algorithm::two_shot},
    {allreduce_only, Members::two_gpus_with_lines, {.traffic = 24 * kib}, Algorithm::ll_one_shot},
    {allreduce_only, Members::two_gpus_with_lines, {.traffic = 256 * kib}, Algorithm::ll128_one_shot},
    {allreduce_only, Members::two_gpus_with_lines, {.bytes = 8 * mib}, Algorithm::ll128_two_shot},
    {allreduce_only, Members::two_gpus_with_lines, {.bytes = 96 * mib}, Algorithm::two_shot},
    {allreduce_only, Members::gpus_with_lines, {.traffic = 96 * kib}, Algorithm::ll_one_shot},
    {allreduce_only, Members::gpus_with_lines, {.traffic = 768 * kib}, Algorithm::ll128_one_shot},
    {allreduce_only, Members::gpus_with_lines, {.bytes = 3 * mib}, Algorithm::ll128_two_shot},
    {allreduce_only, Members::gpus, {.traffic = 512 * kib}, Algorithm::ll_one_shot},
    {allreduce_only, Members::gpus, {.bytes = 512 * kib}, Algorithm::ll_two_shot},
    {allreduce_only, Members::gpus, {.bytes = 32 * mib}, Algorithm::two_shot},
    // Engines go through the channel's memory there.
    {allreduce_only, Members::two_gpus, {.bytes = 384 * mib}, Algorithm::two_shot, Vectors::not_known},
    {allreduce_only, Members::gpus, {.bytes = 192 * mib}, Algorithm::two_shot, Vectors::not_known},
    {allreduce_only, Members::gpus, {}, Algorithm::copy_engine},
    {allreduce_only, Members::any, {}, Algorithm::two_shot},

    {moves | varied, Members::mixed, {}, Algorithm::ll},
    {moves, Members::hosts, {.bytes = 4 * kib}, Algorithm::ll},
    {all_to_all, Members::gpus_with_lines, {.bytes = 64 * kib}, Algorithm::ll},
    {all_to_all, Members::gpus_with_lines, {.bytes = 512 * kib}, Algorithm::ll128},
    {all_to_all, Members::gpus, {.bytes = 256 * kib}, Algorithm::ll},
    {rooted, Members::gpus, {.traffic = 768 * kib}, Algorithm::ll},
    // Of three or more a broadcast's members pass on what they get: engines would send it to each from the root.
    {set_of(Operation::broadcast), Members::not_two_gpus, {}, Algorithm::peer},
    {rooted, Members::gpus, {.bytes = 96 * mib - 1}, Algorithm::peer},
    {all_to_all, Members::two_gpus, {.bytes = 96 * mib - 1}, Algorithm::peer},
    {all_to_all, Members::not_two_gpus, {.bytes = 32 * mib - 1}, Algorithm::peer},
    // Through the channel's memory they are slower than `peer`.
    {moves, Members::gpus, {}, Algorithm::copy_engine, Vectors::known_symmetric},
    {moves | varied, Members::any, {}, Algorithm::peer},

    {reductions_to_some, Members::mixed, {}, Algorithm::ll},
    {reductions_to_some, Members::hosts, {.bytes = 4 * kib}, Algorithm::ll},
    {reduce_scatter_only, Members::gpus, {.bytes = 512 * kib}, Algorithm::ll},
    {reduce_only, Members::gpus, {.traffic = 1 * mib}, Algorithm::ll},
    {reduce_scatter_only, Members::any, {}, Algorithm::read},
    {reduce_only, Members::any, {}, Algorithm::two_shot},
};

/// For calls in kernels, which decide themselves: what is not in a row is not compiled where the choice is automatic.
inline constexpr Preference in_kernels[] = {
    {allreduce_only, Members::hosts, {.bytes = 1 * kib, .in_all = 16 * kib}, Algorithm::ll_one_shot},
    {allreduce_only, Members::hosts, {}, Algorithm::two_shot},
    {allreduce_only, Members::any, {.traffic = 32 * kib}, Algorithm::ll_one_shot},
    {allreduce_only, Members::any, {.bytes = 32 * kib}, Algorithm::ll_two_shot},
    {allreduce_only, Members::mixed, {}, Algorithm::ll_two_shot},
    {allreduce_only, Members::any, {}, Algorithm::two_shot},

    {moves | varied | reductions_to_some, Members::mixed, {}, Algorithm::ll},
    {moves | reductions_to_some, Members::hosts, {.bytes = 4 * kib}, Algorithm::ll},
    {moves | reductions_to_some, Members::gpus, {.bytes = 16 * kib}, Algorithm::ll},
    {moves | varied, Members::any, {}, Algorithm::peer},
    {reduce_scatter_only, Members::any, {}, Algorithm::read},
    {reduce_only, Members::any, {}, Algorithm::two_shot},
};

/// What keeps one block busy, and how many blocks there are at most, of calls on streams by GPUs. On host ranks a call
/// has one block.
struct BlockRule {
  Operations operations;
  Algorithms algorithms;
  std::size_t block_bytes;  ///< of the vector; of what moves data, of all that goes to others
  unsigned most = ~0u, most_of_two = ~0u;
};

/// The algorithms that a table holds for any of `operations`.
template <std::size_t count>
[[nodiscard]] constexpr Algorithms chosen_in(const Preference (&table)[count], Operations operations) {
  Algorithms all = 0;
  for (const Preference& row : table)
    if ((row.operations & operations) != 0) all |= set_of({row.algorithm});
  return all;
}
[[nodiscard]] constexpr Algorithms chosen_on_streams(Operations operations) {
  return chosen_in(on_streams, operations);
}
[[nodiscard]] constexpr Algorithms chosen_in_kernels(Operation operation) {
  return chosen_in(in_kernels, set_of(operation));
}

inline constexpr Algorithms every_algorithm = ~Algorithms{0};
[[nodiscard]] constexpr Algorithms algorithms_in(Protocol protocol) {
  return algorithms_where(every_algorithm, [&](const AlgorithmInfo& info) { return info.protocol == protocol; });
}

inline constexpr BlockRule block_rules[] = {
    // A packet for every other thread.
    {allreduce_only, algorithms_in(Protocol::ll), 1 * kib, 64, 64},
    {allreduce_only, algorithms_in(Protocol::ll128), 2 * kib, 64, 64},
    // Four loads of 16 bytes for each thread. Reads from one peer need more on their way than reads from several.
    {allreduce_only, every_algorithm, 32 * kib, 24, 64},
    {moves, set_of({Algorithm::ll}), 1 * kib},
    {moves, set_of({Algorithm::ll128}), 4 * kib},
    {moves, set_of({Algorithm::bulk}), 256 * kib},
    {all_to_all, set_of({Algorithm::peer}), 32 * kib, ~0u, 32},  // which warps draw: more are not quicker
    {moves, every_algorithm, 32 * kib},
    {varied, every_algorithm, 0},  // whatever comes: every session
    {reductions_to_some, set_of({Algorithm::ll}), 4 * kib},
    {reductions_to_some, every_algorithm, 32 * kib},
};

// --- Sizes within a method --------------------------------------------------------------------------------------

/// An all-reduce by `two_shot` from which the blocks draw their parts: below, a kernel is over too soon for its blocks
/// to differ by much.
inline constexpr std::size_t least_drawn_bytes = 6 * mib;

/// The same of pieces that all members send to all, which warps draw in chunks: four words of 16 bytes a thread.
inline constexpr std::size_t least_drawn_piece_bytes = mib, drawn_chunk_bytes = 2 * kib;

/// Bytes of a slice from which what a member sends to itself is copied first, of two slices by every other session: as
/// long as the others' stores fill the link.
inline constexpr std::size_t least_paired_bytes = 64 * kib;

/// A broadcast whose members pass on what they get.
struct RelaySizes {
  std::size_t least;       ///< of a slice: below, what parts save is less than the wait for them
  std::size_t most_chunk;  ///< of a slice
};
inline constexpr RelaySizes relay_of_gpus{16 * kib, 128 * kib}, relay_of_hosts{4 * kib, mib};

/// An all-reduce by copy engines. Lengths of a row of chunks beside each other, so many to each but the last two: a
/// chunk's copy to its destination takes no longer than the next one's return.
struct EngineSizes {
  std::size_t most_chunk = 64 * mib;  ///< above, what a copy takes to start no longer counts
  std::size_t common_length = 24, last_lengths[2] = {12, 4};
  unsigned kernel_blocks = 32;  ///< more take memory's bandwidth from the copies
};
inline constexpr EngineSizes engine_sizes{};

/// Messages.
struct MessageSizes {
  std::size_t session_eager;                        ///< `MessageOptions::eager_bytes` for each session
  std::size_t eager_block;                          ///< that keep a block busy which writes or reads packets
  std::size_t block;                                ///< the same of a block that copies
  std::size_t least_chunk, most_chunk, all_chunks;  ///< of a rendezvous, to one peer; to all of them
};
inline constexpr MessageSizes messages_of_gpus{8 * kib, 4 * kib, 32 * kib, 64 * kib, 64 * kib, ~std::size_t{0}},
    messages_of_hosts{2 * kib, ~std::size_t{0}, ~std::size_t{0}, 4 * kib, 64 * kib, 512 * kib};

/// Memory of a channel for collectives, of each session: packets for messages of microseconds, of all members together
/// so many, and staging that hides a barrier.
struct ChannelSizes {
  std::size_t packets = 128 * kib, least_packets = 256, staging = 256 * kib;
  std::size_t heap_share = 8;  ///< of the symmetric heap, one part in so many at most for engines, without being asked
};
inline constexpr ChannelSizes channel_sizes{};

[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool fits(const Preference& row, const Situation& here, std::size_t bytes) {
  const std::size_t others = here.members > 2 ? here.members - 1 : 1;
  if (!is_for(row.members, here) || bytes > row.up_to.bytes || bytes * others > row.up_to.traffic ||
      bytes * here.members > row.up_to.in_all)
    return false;
  return row.vectors == Vectors::any || (row.vectors == Vectors::known_symmetric) == here.knows_symmetric;
}

}  // namespace detail::selection

/// Blocks of each member's grid that first meet among themselves, in a hierarchical barrier on a stream.
inline constexpr unsigned hierarchical_barrier_blocks = 4;

/// What a call on a stream takes.
///   bytes  of the vector, or of the piece from one to another
///   count  its elements: with fewer of an all-reduce than members there is no work to share
[[nodiscard]] Algorithm choose_on_stream(Operation operation, const Situation& here, std::size_t bytes,
                                         std::size_t count);
/// Blocks of a call on a stream, on a channel of so many sessions.
[[nodiscard]] unsigned choose_blocks(Operation operation, Algorithm algorithm, const Situation& here, std::size_t bytes,
                                     unsigned sessions);

/// What a call in a kernel takes; all rows of `operation` follow as constants.
template <Operation operation, std::size_t index = 0>
[[nodiscard]] BEELINE_HOST_DEVICE Algorithm choose_in_kernel(const Context& ctx, std::size_t bytes) {
  constexpr detail::selection::Preference row = detail::selection::in_kernels[index];
  if constexpr (contains(row.operations, operation)) {
    const Situation here{.members = ctx.size, .on_hosts = detail::executor == DeviceKind::host, .mixed = ctx.mixed};
    if (detail::selection::fits(row, here, bytes)) return row.algorithm;
  }
  if constexpr (index + 1 < std::size(detail::selection::in_kernels))
    return choose_in_kernel<operation, index + 1>(ctx, bytes);
  else
    return Algorithm::automatic;  // not reached: the last row of each operation fits always
}

}  // namespace beeline
