// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Starts the kernels of collectives, by element type.

#include <cstddef>

#include "beeline/collectives/algorithm.hpp"
#include "beeline/collectives/channel.hpp"
#include "beeline/collectives/reduction.hpp"
#include "beeline/host/launch_options.hpp"
#include "beeline/host/world.hpp"

namespace beeline::detail {

/// What a kernel that reduces gets.
struct ReductionCall {
  void* destination;
  const void* source;
  std::size_t count;
  Reduction reduction;
};

/// Threads of a block of a collective's kernel on a GPU.
inline constexpr unsigned collective_threads = 512;

using ReductionLauncher = void (*)(World& world, const LaunchOptions& options, const CollectiveChannel& channel,
                                   const ReductionCall& call);

/// What launches an all-reduce of elements of `type` by `algorithm`, or nullptr where it has no such kernel.
[[nodiscard]] ReductionLauncher allreduce_launcher(ElementType type, Algorithm algorithm);

/// The same for one element type: each is compiled in a file of its own.
template <class T>
[[nodiscard]] ReductionLauncher allreduce_launcher_of(Algorithm algorithm);

}  // namespace beeline::detail
