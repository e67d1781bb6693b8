// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The registry of methods: one row for each way to carry out each operation. The rows say what is possible;
/// selection/preferences.hpp says which method is preferred. Checks, benchmarks, tests, Python, `beeline info` and the
/// tables of the documents read these rows, so the rows of a new algorithm make it appear in all of them
/// (CONTRIBUTING.md lists the other steps). core/operation.hpp has the shapes of the collectives.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>

#include "beeline/core/macros.hpp"
#include "beeline/core/method.hpp"
#include "beeline/core/status.hpp"

namespace beeline {

/// The name of a combination of schedule, protocol and path.
enum class Algorithm : std::uint32_t {
  automatic,  ///< selection/preferences.hpp chooses
  ll_one_shot,
  ll_two_shot,
  ll128_one_shot,
  ll128_two_shot,
  two_shot,
  read,
  gather,
  gather_cast,
  allgather,
  alltoall_gather,
  alltoall_allgather,
  tree,
  ll,
  ll128,
  peer,
  bulk,
  copy_engine,
  staged_sequential,
  staged_pipelined,
  alltoall,
  flat,
  dissemination,
  hierarchical,
  across_nodes,
  two_shot_across_nodes,
  chain_across_nodes,
  hybrid_pipelined
};
inline constexpr std::uint32_t algorithms = 28;

/// The algorithm's name as it appears in messages, in Python and in JSON.
[[nodiscard]] const char* name(Algorithm algorithm) noexcept;

/// Which member sends which part to which other member, and which member combines parts.
enum class Schedule : std::uint8_t {
  direct,           ///< each piece goes to its receiver, which combines pieces in a reduction; in an all-reduce it
                    ///< returns the result
  one_shot,         ///< all members send to all, every member combines everything
  two_shot,         ///< parts go to their owners, which combine them and send the results to the receivers
  read,             ///< every member reads everything that it combines (000, 6.8.1)
  gather,           ///< all members send to the root, which combines (000, 6.8.2)
  gather_cast,      ///< all members send to the root, which combines and writes the result to all members (000, 6.8.2)
  allgather,        ///< all members write to all, every member combines everything (000, 6.8.2)
  alltoall_gather,  ///< parts go to their owners, which combine them and write the results to the root (000, 6.8.3)
  alltoall_allgather,  ///< parts go to their owners, which combine them and write the results to all members (000,
                       ///< 6.8.3)
  tree,                ///< up a binomial tree, and down again (000, 6.8.3)
  dissemination,       ///< in step k, member r sends to member r + 2^k
  chain,               ///< each member sends to the next, chunk by chunk
  hierarchical         ///< first inside each unit, then between units: grids (000, 6.7.1), or nodes
};

/// What an algorithm requires of its ranks, as bits.
namespace needs {
inline constexpr std::uint32_t nothing = 0;
inline constexpr std::uint32_t loads_and_stores = 1;  ///< loads and stores reach all members, so all members are of one
                                                      ///< kind
inline constexpr std::uint32_t whole_lines = 2;       ///< GPUs that store 128 bytes at once, as found by a self-test
inline constexpr std::uint32_t bulk_copies = 4;       ///< GPUs of compute capability 9.0, or host ranks
inline constexpr std::uint32_t engines = 8;           ///< copy engines; the call has no blocks
inline constexpr std::uint32_t several_nodes = 16;    ///< members on several nodes; such teams have no other algorithms
}  // namespace needs

/// The properties of an algorithm.
struct AlgorithmInfo {
  Algorithm algorithm;
  const char* name;
  Schedule schedule;
  Path path;
  Protocol protocol;
  std::uint32_t needs;  ///< bits of `needs`
  const char* summary;  ///< one line: what each member does
};

/// All algorithms except `automatic`, in the order of their values.
inline constexpr AlgorithmInfo algorithm_infos[] = {
    {Algorithm::ll_one_shot, "ll_one_shot", Schedule::one_shot, Path::peer, Protocol::ll, needs::nothing,
     "all to all in packets, every rank reduces everything"},
    {Algorithm::ll_two_shot, "ll_two_shot", Schedule::two_shot, Path::peer, Protocol::ll, needs::nothing,
     "packets to the owner of each part, who reduces it and sends it to all"},
    {Algorithm::ll128_one_shot, "ll128_one_shot", Schedule::one_shot, Path::peer, Protocol::ll128, needs::whole_lines,
     "as ll_one_shot, in packets of 128 bytes"},
    {Algorithm::ll128_two_shot, "ll128_two_shot", Schedule::two_shot, Path::peer, Protocol::ll128, needs::whole_lines,
     "as ll_two_shot, in packets of 128 bytes"},
    {Algorithm::two_shot, "two_shot", Schedule::two_shot, Path::peer, Protocol::signal, needs::loads_and_stores,
     "each rank reads and reduces its part, and writes it to who gets it; in place where vectors are symmetric"},
    {Algorithm::read, "read", Schedule::read, Path::peer, Protocol::signal, needs::loads_and_stores,
     "every rank reads everything that it reduces"},
    {Algorithm::gather, "gather", Schedule::gather, Path::peer, Protocol::signal, needs::loads_and_stores,
     "all write to the root, which reduces"},
    {Algorithm::gather_cast, "gather_cast", Schedule::gather_cast, Path::peer, Protocol::signal,
     needs::loads_and_stores, "all write to the root, which reduces, and writes the result to all"},
    {Algorithm::allgather, "allgather", Schedule::allgather, Path::peer, Protocol::signal, needs::loads_and_stores,
     "all write to all, every rank reduces everything"},
    {Algorithm::alltoall_gather, "alltoall_gather", Schedule::alltoall_gather, Path::peer, Protocol::signal,
     needs::loads_and_stores, "parts to their owners, who reduce them and write them to the root"},
    {Algorithm::alltoall_allgather, "alltoall_allgather", Schedule::alltoall_allgather, Path::peer, Protocol::signal,
     needs::loads_and_stores, "parts to their owners, who reduce them and write them to all"},
    {Algorithm::tree, "tree", Schedule::tree, Path::peer, Protocol::signal, needs::loads_and_stores,
     "up a binomial tree, and down again where all get the result"},
    {Algorithm::ll, "ll", Schedule::direct, Path::peer, Protocol::ll, needs::nothing, "data and flag in one store"},
    {Algorithm::ll128, "ll128", Schedule::direct, Path::peer, Protocol::ll128, needs::whole_lines,
     "lines of 120 bytes of data and 8 of flag, each in the stores of eight threads"},
    {Algorithm::peer, "peer", Schedule::direct, Path::peer, Protocol::signal, needs::loads_and_stores,
     "loads and stores of the calling threads, then a signal"},
    {Algorithm::bulk, "bulk", Schedule::direct, Path::bulk, Protocol::signal,
     needs::loads_and_stores | needs::bulk_copies, "bulk copies (TMA) through shared memory, then a signal"},
    {Algorithm::copy_engine, "copy_engine", Schedule::direct, Path::copy_engine, Protocol::signal,
     needs::loads_and_stores | needs::engines, "copies by the device's engines, then a signal"},
    {Algorithm::staged_sequential, "staged_sequential", Schedule::direct, Path::staged, Protocol::sequential,
     needs::nothing, "through one buffer in host memory, whole message at a time"},
    {Algorithm::staged_pipelined, "staged_pipelined", Schedule::direct, Path::staged, Protocol::pipelined,
     needs::nothing, "through a ring of buffers in host memory, chunks overlapping"},
    {Algorithm::alltoall, "alltoall", Schedule::one_shot, Path::peer, Protocol::signal, needs::nothing,
     "each tells all: one step"},
    {Algorithm::flat, "flat", Schedule::gather_cast, Path::peer, Protocol::signal, needs::nothing,
     "all check in with member 0, which checks all out: two steps, fewest words"},
    {Algorithm::dissemination, "dissemination", Schedule::dissemination, Path::peer, Protocol::signal, needs::nothing,
     "in step k each tells the member 2^k behind it: log2 steps of one word each"},
    {Algorithm::hierarchical, "hierarchical", Schedule::hierarchical, Path::peer, Protocol::signal, needs::nothing,
     "the blocks of each grid meet, then the members as in alltoall"},
    {Algorithm::across_nodes, "across_nodes", Schedule::hierarchical, Path::network, Protocol::signal,
     needs::several_nodes, "the members of each node, then the nodes: puts and signals, through memory or the network"},
    {Algorithm::two_shot_across_nodes, "two_shot_across_nodes", Schedule::two_shot, Path::network, Protocol::signal,
     needs::several_nodes, "as across_nodes; parts to their nodes, which combine them and send results to the others"},
    {Algorithm::chain_across_nodes, "chain_across_nodes", Schedule::chain, Path::network, Protocol::signal,
     needs::several_nodes, "as across_nodes; each node sends to the next one, chunk by chunk"},
    {Algorithm::hybrid_pipelined, "hybrid_pipelined", Schedule::direct, Path::hybrid, Protocol::pipelined,
     needs::nothing, "directly up to a threshold, above it in chunks through buffers of the sender"},
};

/// What an algorithm requires, in words.
[[nodiscard]] std::string needs_of(const AlgorithmInfo& info);

/// The properties of an algorithm other than `automatic`.
[[nodiscard]] constexpr const AlgorithmInfo& info_of(Algorithm algorithm) {
  return algorithm_infos[static_cast<std::uint32_t>(algorithm) - 1];
}

/// Whether an algorithm uses LL128. It is available only if `no_ll128_reason` (host/packets.hpp) returns no reason.
[[nodiscard]] constexpr bool is_ll128(Algorithm algorithm) {
  return algorithm != Algorithm::automatic && info_of(algorithm).protocol == Protocol::ll128;
}

/// The range of sizes in bytes that benchmarks measure with a method.
struct ByteRange {
  std::size_t least = 0, most = std::numeric_limits<std::size_t>::max();
};

/// An operation and an algorithm that carries it out.
struct MethodRow {
  Operation operation;
  Algorithm algorithm;
  std::uint32_t controls;  ///< one bit for each `Control` that can issue it
  ByteRange sizes = {};

  [[nodiscard]] BEELINE_HOST_DEVICE constexpr bool is_by(Control control) const {
    return (controls & bit(control)) != 0;
  }
  /// `control/path/protocol`.
  [[nodiscard]] Method method(Control control) const {
    return {control, info_of(algorithm).path, info_of(algorithm).protocol};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE static constexpr std::uint32_t bit(Control control) {
    return std::uint32_t{1} << static_cast<std::uint32_t>(control);
  }
};

namespace detail::registry {

inline constexpr std::uint32_t kernel = MethodRow::bit(Control::device), stream = MethodRow::bit(Control::stream),
                               host = MethodRow::bit(Control::host), proxy = MethodRow::bit(Control::proxy),
                               triggered = MethodRow::bit(Control::triggered), everywhere = kernel | stream | host;
inline constexpr std::size_t kib = 1024, mib = kib * kib;

inline constexpr MethodRow rows[] = {
    {Operation::put, Algorithm::ll, kernel},
    {Operation::put, Algorithm::ll128, kernel},
    {Operation::put, Algorithm::peer, kernel | proxy},
    {Operation::put, Algorithm::bulk, kernel},
    {Operation::put, Algorithm::copy_engine, stream | host | proxy | triggered},
    {Operation::put, Algorithm::staged_sequential, host},
    {Operation::put, Algorithm::staged_pipelined, host},
    {Operation::put, Algorithm::hybrid_pipelined, host},
    {Operation::get, Algorithm::peer, kernel | proxy},
    {Operation::get, Algorithm::bulk, kernel},
    {Operation::get, Algorithm::copy_engine, stream | host | proxy | triggered},
    {Operation::send, Algorithm::ll, kernel | stream},
    {Operation::send, Algorithm::peer, kernel | stream},
    {Operation::signal, Algorithm::peer, everywhere | proxy | triggered},
    {Operation::atomic, Algorithm::peer, kernel | proxy | triggered},
    {Operation::barrier, Algorithm::alltoall, everywhere},
    {Operation::barrier, Algorithm::flat, kernel | stream},
    {Operation::barrier, Algorithm::dissemination, kernel | stream},
    {Operation::barrier, Algorithm::hierarchical, kernel | stream},
    {Operation::barrier, Algorithm::across_nodes, stream},

    {Operation::broadcast, Algorithm::ll, kernel | stream, {0, 16 * mib}},
    {Operation::broadcast, Algorithm::ll128, kernel | stream, {0, 64 * mib}},
    {Operation::broadcast, Algorithm::peer, kernel | stream},
    {Operation::broadcast, Algorithm::bulk, kernel | stream, {64 * kib}},
    {Operation::broadcast, Algorithm::copy_engine, stream, {64 * kib}},
    {Operation::broadcast, Algorithm::across_nodes, stream},
    {Operation::broadcast, Algorithm::chain_across_nodes, stream},
    {Operation::scatter, Algorithm::ll, kernel | stream, {0, 16 * mib}},
    {Operation::scatter, Algorithm::peer, kernel | stream},
    {Operation::scatter, Algorithm::bulk, kernel | stream, {64 * kib}},
    {Operation::scatter, Algorithm::copy_engine, stream, {64 * kib}},
    {Operation::scatter, Algorithm::across_nodes, stream},
    {Operation::gather, Algorithm::ll, kernel | stream, {0, 16 * mib}},
    {Operation::gather, Algorithm::peer, kernel | stream},
    {Operation::gather, Algorithm::bulk, kernel | stream, {64 * kib}},
    {Operation::gather, Algorithm::across_nodes, stream},
    {Operation::allgather, Algorithm::ll, kernel | stream, {0, 16 * mib}},
    {Operation::allgather, Algorithm::ll128, kernel | stream, {0, 64 * mib}},
    {Operation::allgather, Algorithm::peer, kernel | stream},
    {Operation::allgather, Algorithm::bulk, kernel | stream, {64 * kib}},
    {Operation::allgather, Algorithm::copy_engine, stream, {64 * kib}},
    {Operation::allgather, Algorithm::across_nodes, stream},
    {Operation::alltoall, Algorithm::ll, kernel | stream, {0, 16 * mib}},
    {Operation::alltoall, Algorithm::ll128, kernel | stream, {0, 64 * mib}},
    {Operation::alltoall, Algorithm::peer, kernel | stream},
    {Operation::alltoall, Algorithm::bulk, kernel | stream, {64 * kib}},
    {Operation::alltoall, Algorithm::copy_engine, stream, {64 * kib}},
    {Operation::alltoall, Algorithm::across_nodes, stream},
    {Operation::alltoallv, Algorithm::ll, kernel | stream, {0, 16 * mib}},
    {Operation::alltoallv, Algorithm::peer, kernel | stream},
    {Operation::alltoallv, Algorithm::bulk, kernel | stream, {64 * kib}},
    {Operation::alltoallv, Algorithm::across_nodes, stream},

    {Operation::reduce, Algorithm::ll, kernel | stream, {0, 16 * mib}},
    {Operation::reduce, Algorithm::ll128, kernel | stream, {0, 64 * mib}},
    {Operation::reduce, Algorithm::two_shot, kernel | stream},
    {Operation::reduce, Algorithm::read, kernel | stream, {0, 256 * mib}},
    {Operation::reduce, Algorithm::gather, kernel | stream, {0, 256 * mib}},
    {Operation::reduce, Algorithm::alltoall_gather, kernel | stream},
    {Operation::reduce, Algorithm::tree, kernel | stream, {0, 16 * mib}},
    {Operation::reduce, Algorithm::across_nodes, stream},
    {Operation::reduce, Algorithm::two_shot_across_nodes, stream},
    {Operation::reduce_scatter, Algorithm::ll, kernel | stream, {0, 16 * mib}},
    {Operation::reduce_scatter, Algorithm::read, kernel | stream},
    {Operation::reduce_scatter, Algorithm::peer, kernel | stream},
    {Operation::reduce_scatter, Algorithm::bulk, kernel | stream, {64 * kib}},
    {Operation::reduce_scatter, Algorithm::across_nodes, stream},
    {Operation::allreduce, Algorithm::ll_one_shot, kernel | stream, {0, 4 * mib}},
    {Operation::allreduce, Algorithm::ll_two_shot, kernel | stream, {0, 64 * mib}},
    {Operation::allreduce, Algorithm::ll128_one_shot, kernel | stream, {0, 4 * mib}},
    {Operation::allreduce, Algorithm::ll128_two_shot, kernel | stream, {0, 64 * mib}},
    {Operation::allreduce, Algorithm::two_shot, kernel | stream},
    {Operation::allreduce, Algorithm::copy_engine, stream, {mib}},
    {Operation::allreduce, Algorithm::bulk, kernel | stream, {mib}},
    {Operation::allreduce, Algorithm::read, kernel | stream, {0, 16 * mib}},
    {Operation::allreduce, Algorithm::gather_cast, kernel | stream, {0, 16 * mib}},
    {Operation::allreduce, Algorithm::allgather, kernel | stream, {0, 16 * mib}},
    {Operation::allreduce, Algorithm::alltoall_allgather, kernel | stream, {0, 16 * mib}},
    {Operation::allreduce, Algorithm::tree, kernel | stream, {0, 16 * mib}},
    {Operation::allreduce, Algorithm::across_nodes, stream},
    {Operation::allreduce, Algorithm::two_shot_across_nodes, stream},
};

}  // namespace detail::registry

inline constexpr std::span<const MethodRow> method_rows = detail::registry::rows;

/// A set of algorithms: one bit for each `Algorithm`.
using Algorithms = std::uint32_t;

[[nodiscard]] constexpr Algorithms set_of(std::initializer_list<Algorithm> all) {
  Algorithms found = 0;
  for (const Algorithm one : all) found |= Algorithms{1} << static_cast<std::uint32_t>(one);
  return found;
}
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool contains(Algorithms some, Algorithm algorithm) {
  const auto number = static_cast<std::uint32_t>(algorithm);
  return number < algorithms && (some >> number & 1u) != 0;
}

/// The algorithms of an operation that `control` can issue.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr Algorithms algorithms_of(Operation operation, Control control) {
  Algorithms all = 0;
  for (const MethodRow& row : detail::registry::rows)
    if (row.operation == operation && row.is_by(control))
      all |= Algorithms{1} << static_cast<std::uint32_t>(row.algorithm);
  return all;
}

/// The algorithms in `some` for which `is_meant` returns true.
template <class IsMeant>
[[nodiscard]] constexpr Algorithms algorithms_where(Algorithms some, IsMeant is_meant) {
  Algorithms found = 0;
  for (const AlgorithmInfo& info : algorithm_infos)
    if (contains(some, info.algorithm) && is_meant(info)) found |= set_of({info.algorithm});
  return found;
}

/// Calls `use.operator()<member>()` and returns its result. `member`, an algorithm or operation of the set `some`,
/// becomes a template argument.
template <auto some, class Member, class Use>
BEELINE_INLINE BEELINE_HOST_DEVICE constexpr auto with_member(Member member, const Use& use) {
  constexpr auto first = static_cast<Member>(std::countr_zero(some));
  constexpr auto others = some & (some - 1);
  if constexpr (others != 0)
    if (member != first) return with_member<others>(member, use);
  return use.template operator()<first>();
}

/// Whether `control` can issue the operation with this algorithm.
[[nodiscard]] bool has_algorithm(Operation operation, Algorithm algorithm, Control control) noexcept;

}  // namespace beeline
