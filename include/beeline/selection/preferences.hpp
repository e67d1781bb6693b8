// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The choice among the possible methods (core/registry.hpp), of the number of blocks and of the sizes of pieces. The
/// choices are tables; the first matching row of a table applies. No other file chooses by size.
///
/// The sizes for GPUs are the crossover points of the methods' times (bench/records), with two members on H200, with
/// four on H100; those for several nodes of host ranks on three network namespaces.

#include <iterator>

#include "beeline/core/registry.hpp"
#include "beeline/device/impl/caller_check.hpp"

namespace beeline {

/// The facts on which a choice depends. They are the same on all members.
struct Situation {
  std::uint32_t members = 1;
  bool on_hosts = false;         ///< the caller, or any rank of its world, runs on CPU threads
  bool mixed = false;            ///< whether GPU ranks and host ranks are members
  std::uint32_t nodes = 1;       ///< nodes that members are on
  bool has_lines = false;        ///< the members are GPUs that can exchange packets of 128 bytes
  bool has_engines = false;      ///< copy engines may be used
  bool knows_symmetric = false;  ///< the caller asserts that vectors are symmetric
};

namespace detail::selection {

/// The teams to which a row applies.
enum class Members : std::uint8_t {
  any,
  hosts,
  mixed,
  gpus,
  two_gpus,
  not_two_gpus,
  gpus_with_lines,
  two_gpus_with_lines,
  on_several_nodes,
  on_many_nodes  ///< more than two
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
    case Members::on_several_nodes:
      return here.nodes > 1;
    case Members::on_many_nodes:
      return here.nodes > 2;
  }
  return false;
}

inline constexpr std::size_t kib = 1024, mib = kib * kib;

inline constexpr Operations varied = operations_where([](const CollectiveShape&shape) { return shape.varies; }),
                            rooted = operations_where([](const CollectiveShape&shape) {
                                       return shape.has_root() && !shape.reduces;
                                     }) &
                                     ~varied,
                            all_to_all =
                                operations_where([](const CollectiveShape&shape) { return shape.moves_all(); }) &
                                ~varied,
                            moves = rooted | all_to_all, broadcast_only = set_of(Operation::broadcast),
                            allreduce_only = set_of(Operation::allreduce), reduce_only = set_of(Operation::reduce),
                            reduce_scatter_only = set_of(Operation::reduce_scatter),
                            reductions_to_some = reduce_only | reduce_scatter_only;

/// The largest size to which a row applies. For calls in a program's own kernels, the vectors are the slices of one
/// session.
struct UpTo {
  std::size_t bytes = ~std::size_t{0};    ///< size of the vector, or of the piece from one member to another
  std::size_t traffic = ~std::size_t{0};  ///< size of the pieces from one member to all others
  std::size_t in_all = ~std::size_t{0};   ///< size of all members' vectors together
};

enum class Vectors : std::uint8_t { any, known_symmetric, not_known };

struct Preference {
  Operations operations;
  Members members;
  UpTo up_to;
  Algorithm algorithm;
  Vectors vectors = Vectors::any;
};

/// The choices for calls on streams.
inline constexpr Preference on_streams[] = {
    // Of more than two nodes, each node would send a long vector to all others, or the root's node would send it to all
    // or receive all vectors.
    {allreduce_only, Members::on_many_nodes, {.bytes = 32 * kib}, Algorithm::across_nodes},
    {allreduce_only, Members::on_many_nodes, {}, Algorithm::two_shot_across_nodes},
    {reduce_only, Members::on_many_nodes, {.bytes = 256 * kib}, Algorithm::across_nodes},
    {reduce_only, Members::on_many_nodes, {}, Algorithm::two_shot_across_nodes},
    {broadcast_only, Members::on_many_nodes, {.bytes = 64 * kib}, Algorithm::across_nodes},
    {broadcast_only, Members::on_many_nodes, {}, Algorithm::chain_across_nodes},
    {allreduce_only | moves | varied | reductions_to_some, Members::on_several_nodes, {}, Algorithm::across_nodes},

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
    {allreduce_only, Members::gpus_with_lines, {.bytes = 8 * mib}, Algorithm::ll128_two_shot},
    {allreduce_only, Members::gpus, {.traffic = 512 * kib}, Algorithm::ll_one_shot},
    {allreduce_only, Members::gpus, {.bytes = 512 * kib}, Algorithm::ll_two_shot},
    {allreduce_only, Members::gpus, {.bytes = 32 * mib}, Algorithm::two_shot},
    // In this range copy engines would use the channel's memory.
    {allreduce_only, Members::two_gpus, {}, Algorithm::two_shot, Vectors::not_known},
    {allreduce_only, Members::gpus, {.bytes = 192 * mib}, Algorithm::two_shot, Vectors::not_known},
    {allreduce_only, Members::gpus, {}, Algorithm::copy_engine},
    {allreduce_only, Members::any, {}, Algorithm::two_shot},

    {moves | varied, Members::mixed, {}, Algorithm::ll},
    {moves, Members::hosts, {.bytes = 4 * kib}, Algorithm::ll},
    {all_to_all, Members::gpus_with_lines, {.bytes = 64 * kib}, Algorithm::ll},
    {all_to_all, Members::gpus_with_lines, {.bytes = 512 * kib}, Algorithm::ll128},
    {all_to_all, Members::gpus, {.bytes = 256 * kib}, Algorithm::ll},
    {broadcast_only, Members::gpus_with_lines, {.traffic = 96 * kib}, Algorithm::ll},
    {broadcast_only, Members::two_gpus_with_lines, {.bytes = 2 * mib}, Algorithm::ll128},
    {broadcast_only, Members::two_gpus_with_lines, {.bytes = 96 * mib - 1}, Algorithm::peer},
    {broadcast_only, Members::gpus_with_lines, {.bytes = 16 * mib}, Algorithm::ll128},
    {rooted, Members::gpus, {.traffic = 768 * kib}, Algorithm::ll},
    // With three or more members, `peer` relays a broadcast from member to member; copy engines would send it from the
    // root to each member.
    {broadcast_only, Members::not_two_gpus, {}, Algorithm::peer},
    {rooted, Members::gpus, {.bytes = 96 * mib - 1}, Algorithm::peer},
    {all_to_all, Members::two_gpus, {.bytes = 96 * mib - 1}, Algorithm::peer},
    {all_to_all, Members::not_two_gpus, {.bytes = 32 * mib - 1}, Algorithm::peer},
    // With the channel's memory as bounce buffer, copy engines are slower than `peer`.
    {moves, Members::gpus, {}, Algorithm::copy_engine, Vectors::known_symmetric},
    {moves | varied, Members::any, {}, Algorithm::peer},

    {reductions_to_some, Members::mixed, {}, Algorithm::ll},
    {reductions_to_some, Members::hosts, {.bytes = 4 * kib}, Algorithm::ll},
    {reduce_scatter_only, Members::gpus, {.bytes = 512 * kib}, Algorithm::ll},
    {reduce_only, Members::gpus_with_lines, {.traffic = 96 * kib}, Algorithm::ll},
    {reduce_only, Members::two_gpus_with_lines, {.bytes = 1 * mib}, Algorithm::ll128},
    {reduce_only, Members::two_gpus_with_lines, {}, Algorithm::two_shot},
    {reduce_only, Members::gpus_with_lines, {.bytes = 4 * mib}, Algorithm::ll128},
    {reduce_only, Members::gpus, {.traffic = 1 * mib}, Algorithm::ll},
    {reduce_scatter_only, Members::any, {}, Algorithm::read},
    {reduce_only, Members::any, {}, Algorithm::two_shot},
};

/// The choices for calls in kernels, made on the device. Algorithms without a row are not compiled if the choice is
/// automatic.
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

/// The bytes that keep one block busy, and the largest number of blocks, for calls on streams of GPUs. On host ranks a
/// call has one block. Stores need 128 blocks to fill a link, loads need 64.
struct BlockRule {
  Operations operations;
  Algorithms algorithms;
  std::size_t block_bytes;  ///< bytes of the vector; for operations that move data, of all pieces to other members
  unsigned most = 64, most_of_two = 64;
  std::uint32_t pushed_by = 0;  ///< if not 0: the rule is for all-reduces of up to `pushed_by` members that push parts
};

/// The algorithms in a table's rows for any of `operations`.
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

/// Limits from which the members of an all-reduce of GPUs by `two_shot` push parts to their owners
/// (schedule/pushed.hpp), and the greatest length of a pushed chunk. The owner waits for the first chunk before it
/// combines.
inline constexpr std::uint32_t most_pushing_members = 4;
inline constexpr std::size_t least_pushed_bytes = 8 * mib, least_pushed_of_few = 3 * mib, pushed_chunk_bytes = 64 * kib,
                             least_pushing_staging = 2 * kib;  ///< staging memory of a session
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool pushes(std::uint32_t members, std::size_t bytes) {
  return members > 1 && members <= most_pushing_members &&
         bytes >= (members == 2 ? least_pushed_bytes : least_pushed_of_few);
}

inline constexpr BlockRule block_rules[] = {
    // A packet for every other thread.
    {allreduce_only, algorithms_in(Protocol::ll), 1 * kib},
    {allreduce_only, algorithms_in(Protocol::ll128), 2 * kib},
    {allreduce_only, set_of({Algorithm::two_shot}), 128 * kib, 64, 128, 2},
    {allreduce_only, set_of({Algorithm::two_shot}), 64 * kib, 128, 128, most_pushing_members},
    // Four loads of 16 bytes for each thread. Reads from a single peer need more loads in flight than reads from
    // several.
    {allreduce_only, every_algorithm, 32 * kib, 24, 64},
    {moves, set_of({Algorithm::ll}), 1 * kib},
    {moves, set_of({Algorithm::ll128}), 4 * kib},
    {moves, set_of({Algorithm::bulk}), 256 * kib},
    {broadcast_only, set_of({Algorithm::peer}), 32 * kib, 128},
    {moves, every_algorithm, 32 * kib},
    {varied, every_algorithm, 0},  // always the largest number of blocks
    {reductions_to_some, set_of({Algorithm::ll, Algorithm::ll128}), 4 * kib},
    {reduce_only, set_of({Algorithm::two_shot}), 512 * kib, 128},
    {reductions_to_some, every_algorithm, 32 * kib},
};

// --- Sizes within a method --------------------------------------------------------------------------------------

/// The shortest vectors or pieces of overlapped calls that wait for all members before their grid starts, and the limit
/// of this wait. Members that arrive later are rare, and errors that only the grid detects must not be delayed for
/// long.
inline constexpr std::size_t least_overlapped_bytes = mib;
inline constexpr std::uint64_t arrival_limit_ns = 50'000'000;

/// The smallest all-reduce by `two_shot` whose blocks take their parts dynamically. In a shorter kernel the blocks'
/// progress differs little.
inline constexpr std::size_t least_drawn_bytes = 6 * mib;

/// Largest number of threads of a call in all its blocks: more threads are not faster, and take room from other
/// kernels.
inline constexpr unsigned most_full_blocks = 64, most_call_threads = most_full_blocks * 512;

/// In operations in which all members send to all: the smallest piece whose chunks are distributed to warps
/// dynamically, and the size of a chunk, four words of 16 bytes for each thread.
inline constexpr std::size_t least_drawn_piece_bytes = mib, drawn_chunk_bytes = 2 * kib;

/// With two members, the number of each GPU's blocks that take such chunks: more blocks are not faster. The other
/// blocks are for calls through the channel's memory, which copy each byte twice (schedule/pushed_movement.hpp); in
/// other calls these blocks end after the address exchange.
inline constexpr std::uint32_t most_drawing_of_two = 32;

/// The smallest slice for which every other session copies its member's own piece first, while the stores of the other
/// sessions fill the link.
inline constexpr std::size_t least_paired_bytes = 64 * kib;

/// Chunks of a slice: `number` chunks, if their lengths are then between `least` and `most_chunk`.
struct ChunkSizes {
  std::size_t number, least, most_chunk;

  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::size_t chunk_of(std::size_t bytes) const {
    const std::size_t wanted = (bytes / number + 127) & ~std::size_t{127};
    return wanted < least ? least : wanted < most_chunk ? wanted : most_chunk;
  }
};

/// Sizes of a broadcast that is relayed by parts, so that all members have work, and of a broadcast along a chain of
/// members.
///   least          smallest slice: in smaller slices, chunks save less time than the waits for them cost
///   least_chained  smallest vector that goes along a chain
struct RelaySizes {
  std::size_t least, least_chained;
  ChunkSizes parts, chained = {};
};
inline constexpr RelaySizes relay_of_gpus{16 * kib, 256 * mib, {4, 16 * kib, 48 * kib}, {32, 16 * kib, 64 * kib}},
    relay_of_hosts{4 * kib, ~std::size_t{0}, {4, 4 * kib, mib}};

/// Sizes of a reduction along a chain of GPUs.
///   least   smallest vector
///   places  chunks that the channel's memory holds
struct ReduceChainSizes : ChunkSizes {
  std::size_t least_vector;
  std::uint32_t places;
};
inline constexpr ReduceChainSizes reduce_chain{{32, 16 * kib, 64 * kib}, 256 * mib, 4};

/// Sizes of an all-reduce by copy engines. The relative lengths of consecutive chunks: `common_length` for each chunk
/// but the last two, `last_lengths` for these. So a chunk's copy to its destination takes no longer than the return of
/// the next chunk.
struct EngineSizes {
  std::size_t most_chunk = 128 * mib;  ///< see bench/records/NOTES.md, Limits of the link
  std::size_t common_length = 24, last_lengths[2] = {12, 4};
  unsigned kernel_blocks = 32;  ///< more blocks would take memory bandwidth from the copies
};
inline constexpr EngineSizes engine_sizes{};

/// Sizes of messages.
struct MessageSizes {
  std::size_t session_eager;                        ///< `MessageOptions::eager_bytes` for each session
  std::size_t eager_block;                          ///< bytes that occupy a block that writes or reads packets
  std::size_t block;                                ///< bytes that occupy a block that copies
  std::size_t least_chunk, most_chunk, all_chunks;  ///< chunks of a rendezvous: smallest and largest for one peer;
                                                    ///< largest total for all peers
};
inline constexpr MessageSizes messages_of_gpus{8 * kib, 4 * kib, 32 * kib, 64 * kib, 64 * kib, ~std::size_t{0}},
    messages_of_hosts{2 * kib, ~std::size_t{0}, ~std::size_t{0}, 4 * kib, 64 * kib, 512 * kib};

/// Memory of a collective channel for each session: packets, for short vectors, with a limit for all members together;
/// and staging memory, large enough to hide the time of a barrier.
struct ChannelSizes {
  std::size_t packets = 128 * kib, least_packets = 256, staging = 256 * kib;
  std::size_t heap_share = 8;  ///< by default engines get at most 1 / `heap_share` of the symmetric heap
  std::size_t least_heap_of_few = std::size_t{1} << 30;  ///< smallest heap with which channels of up to four GPUs get
                                                         ///< twice the sessions: 150 MB in all
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

/// Blocks of each member's grid in a hierarchical barrier on a stream; the blocks of a grid synchronize first among
/// themselves.
inline constexpr unsigned hierarchical_barrier_blocks = 4;

/// The algorithm for a call on a stream.
///   bytes  bytes of the vector, or of the piece from one member to another
///   count  elements of the vector or piece: an all-reduce of fewer elements than members has no work to share
[[nodiscard]] Algorithm choose_on_stream(Operation operation, const Situation& here, std::size_t bytes,
                                         std::size_t count);
/// The number of blocks of a call on a stream, for a channel with `sessions` sessions.
[[nodiscard]] unsigned choose_blocks(Operation operation, Algorithm algorithm, const Situation& here, std::size_t bytes,
                                     unsigned sessions);

/// The algorithm for a call in a kernel; the rows of `operation` are compile-time constants.
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
    return Algorithm::automatic;  // not reached: the last row of each operation always matches
}

}  // namespace beeline
