// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Portable kernels: a functor that runs on a GPU as a grid of thread blocks, and on a host rank as teams of CPU
/// threads.
///
///   struct Hello {
///     template <class Grid>
///     BEELINE_HOST_DEVICE void operator()(Grid& grid, const beeline::Context& ctx, float* data) const { ... }
///   };
///   beeline::launch(world, {.blocks = 4, .threads = 256}, Hello{}, data);
///
/// A functor may have three constants. `static constexpr std::size_t shared_bytes` is the size of the dynamic shared
/// memory of each thread block. `static constexpr unsigned max_threads` is the largest number of threads of a block for
/// which the kernel is compiled. With `static constexpr bool starts_early = true` the GPU prepares the kernel while the
/// stream's earlier kernel ends (programmatic dependent launch), if the kernel is compiled for compute capability 9.0
/// or later; the functor still begins after that kernel has ended.

#include <type_traits>

#include "beeline/host/impl/launch.hpp"
#include "beeline/host/launch_options.hpp"
#include "beeline/host/world.hpp"

namespace beeline {

/// Starts `kernel(grid, context, args...)` on this rank's device, with the team's context, whose peers are ranks of the
/// team. Asynchronous. Kernel and arguments are copied as bytes, so they are trivially copyable: pointers, numbers,
/// structures of these. Throws no_resource if a waiting grid could not be resident beside the grids that already wait
/// on the device (the error names both); unavailable on a GPU rank if the calling file is compiled without CUDA.
template <class Kernel, class... Args>
void launch(Team& team, const LaunchOptions& options, const Kernel& kernel, Args&&... args) {
  constexpr bool travels = (detail::travels_as_bytes<Kernel> && ... && detail::travels_as_bytes<std::decay_t<Args>>);
  static_assert(travels,
                "a kernel and its arguments are copied to the device as bytes: they must be trivially copyable (pass "
                "data(), not the array)");
  if constexpr (travels) {  // otherwise the compiler would add errors inside the library
    constexpr bool callable = detail::is_kernel<Kernel, std::decay_t<Args>...>;
    static_assert(callable,
                  "the kernel has no operator()(Grid& grid, const Context& ctx, args...) const for these arguments");
    if constexpr (callable) detail::launch_kernel<Kernel, std::decay_t<Args>...>(team, options, kernel, args...);
  }
}

/// Largest number of blocks, with `threads` threads each, of a waiting grid of this kernel on this rank: the rank's
/// share of the device's capacity. On a host rank it is the number of blocks that the rank's share of the cores runs at
/// once, and does not depend on `threads`. On a host rank a waiting grid may have more blocks, with at most
/// `max_host_threads` CPU threads in all; the threads then take turns on the cores.
template <class Kernel, class... Args>
[[nodiscard]] unsigned resident_blocks(World& world, unsigned threads) {
  return detail::resident_blocks<Kernel, Args...>(world, threads);
}
/// As above, with the types of the kernel and of the arguments of a later `launch`.
template <class Kernel, class... Args>
[[nodiscard]] unsigned resident_blocks(World& world, unsigned threads, const Kernel& /*kernel*/, Args&&... /*args*/) {
  return detail::resident_blocks<Kernel, std::decay_t<Args>...>(world, threads);
}

}  // namespace beeline
