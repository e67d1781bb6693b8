// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Starts the kernels of collectives, by element type.

#include <algorithm>
#include <cstddef>

#include "beeline/collectives/algorithm.hpp"
#include "beeline/collectives/channel.hpp"
#include "beeline/collectives/impl/combine.hpp"
#include "beeline/host/launch_options.hpp"
#include "beeline/host/team.hpp"

namespace beeline::detail {

/// What a kernel that reduces gets.
struct ReductionCall {
  void* destination;
  const void* source;
  std::size_t count;
  Reduction reduction;
};

/// What the kernel of reductions by name gets.
struct NamedReductionCall {
  ReductionCall vectors;
  std::uint32_t root;  ///< `no_peer`: all
  bool scatters;
  Algorithm algorithm;
};

/// Threads of a block of a collective's kernel on a GPU.
inline constexpr unsigned collective_threads = 512;
/// The whole warps, at least two, that have so many threads, where a block can have as many.
[[nodiscard]] constexpr unsigned whole_warps(std::size_t threads) {
  return static_cast<unsigned>(std::clamp<std::size_t>((threads + 31) / 32 * 32, 64, collective_threads));
}

using ReductionLauncher = void (*)(Team& team, const LaunchOptions& options, const CollectiveChannel& channel,
                                   const ReductionCall& call);

/// What launches an all-reduce of elements of `type` by `algorithm`, or nullptr where it has no such kernel.
[[nodiscard]] ReductionLauncher allreduce_launcher(ElementType type, Algorithm algorithm);

/// Vectors of all members that lie on this rank, and what is to become of them.
struct LocalReduction {
  void* destination;  ///< [count], may be this member's
  FetchedVectors vectors;
  std::size_t count;
  Reduction reduction;
};

using LocalReduceLauncher = void (*)(Team& team, const LaunchOptions& options, const LocalReduction& work);
[[nodiscard]] LocalReduceLauncher local_reduce_launcher(ElementType type);

/// The same for one element type: each is compiled in a file of its own.
template <class T>
[[nodiscard]] ReductionLauncher allreduce_launcher_of(Algorithm algorithm);
template <class T>
void launch_local_reduce_of(Team& team, const LaunchOptions& options, const LocalReduction& work);

using NamedReductionLauncher = void (*)(Team& team, const LaunchOptions& options, const CollectiveChannel& channel,
                                        const NamedReductionCall& call);

/// What launches reductions by name (collectives/reduce_by.hpp) of elements of `type`.
[[nodiscard]] NamedReductionLauncher reduction_launcher(ElementType type);
template <class T>
[[nodiscard]] NamedReductionLauncher reduction_launcher_of();

}  // namespace beeline::detail
