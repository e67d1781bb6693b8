// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Starts the kernels of collectives, by element type.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/collectives/channel.hpp"
#include "beeline/collectives/impl/combine.hpp"
#include "beeline/collectives/impl/vector_mappings.hpp"
#include "beeline/host/launch_options.hpp"
#include "beeline/host/team.hpp"

namespace beeline::detail {

/// What the launch of a collective's kernel needs: the team, the options and the channel. All references outlive this.
struct ChannelLaunch {
  Team& team;
  const LaunchOptions& options;
  const CollectiveChannel& channel;
};

/// A call of a collective with vectors, as one member makes it.
struct VectorCall {
  CallDescription what;
  void* destination;
  const void* source;
  const VectorMappings* mappings = nullptr;  ///< of the vectors; nullptr: members reach only heaps
  std::size_t* tables = nullptr;             ///< [sessions, 4, max_node_ranks] for the blocks of a host rank
};
/// Bytes of the vector, or of the piece from one member to another; 0 if pieces differ in length.
[[nodiscard]] inline std::size_t bytes_of(const CallDescription& what) {
  return what.count * beeline::bytes_of(what.element.type);
}
/// Whether the call moves no data.
[[nodiscard]] constexpr bool is_empty(const CallDescription& what) {
  return what.count == 0 && !find_shape(what.operation)->varies;
}

/// Threads of a block of a collective's kernel on a GPU.
inline constexpr unsigned collective_threads = 512;
/// `threads` rounded up to whole warps, at least two warps and at most `collective_threads`.
[[nodiscard]] constexpr unsigned whole_warps(std::size_t threads) {
  return static_cast<unsigned>(std::clamp<std::size_t>((threads + 31) / 32 * 32, 64, collective_threads));
}

/// Memory for the mappings that a block's threads share. Thread 0 fills it.
template <class Grid>
[[nodiscard]] BEELINE_HOST_DEVICE MappingTable& mapping_table(const Grid& grid, const VectorMappings& mappings,
                                                              std::size_t* tables) {
  static_assert(sizeof(MappingTable) <= 4 * max_node_ranks * sizeof(std::size_t));
  void* const place = executor == DeviceKind::gpu
                          ? static_cast<void*>(machine::dynamic_shared_memory())
                          : static_cast<void*>(tables + std::size_t{grid.block_rank()} * 4 * max_node_ranks);
  auto* const table = static_cast<MappingTable*>(place);
  if (grid.block().thread_rank() == 0) table->mine = mappings;
  grid.block().sync();
  return *table;
}

/// All members' vectors, which have arrived on this rank, and their reduction.
struct LocalReduction {
  void* destination;  ///< [count], may be this member's source
  FetchedVectors vectors;
  std::size_t count;
  Reduction reduction;
};

/// Starts the kernels of reductions of one element type.
struct ReductionLaunchers {
  void (*reduce)(const ChannelLaunch& on, const VectorCall& call);
  void (*reduce_locally)(Team& team, const LaunchOptions& options, const LocalReduction& work);
};
[[nodiscard]] ReductionLaunchers reduction_launchers(ElementType type, Reduction reduction);

/// Whether a reduction distinguishes signed from unsigned words. Sums, products and bit operations do not: there
/// unsigned types use the kernels of the signed types.
[[nodiscard]] constexpr bool heeds_sign(Reduction reduction) {
  return reduction == Reduction::minimum || reduction == Reduction::maximum || reduction == Reduction::average;
}
/// Whether T has kernels of its own for `heeds_sign` reductions only.
template <class T>
inline constexpr bool shares_kernels = std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::uint64_t>;

/// Launchers of the kernels of T; each type is compiled in a file of its own.
template <class T>
[[nodiscard]] ReductionLaunchers reduction_launchers_of();

}  // namespace beeline::detail
