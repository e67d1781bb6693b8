// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Portable kernels: one functor, run on a GPU as a grid of thread blocks, on a host rank as teams of CPU threads.
///
///   struct Hello {
///     template <class Grid>
///     BEELINE_HOST_DEVICE void operator()(Grid& grid, const beeline::Context& ctx, float* data) const { ... }
///   };
///   beeline::launch(world, {.blocks = 4, .threads = 256}, Hello{}, data);
///
/// A functor's `static constexpr std::size_t shared_bytes`, if it has one, is the dynamic shared memory of each of its
/// thread blocks; its `static constexpr unsigned max_threads` the most threads of a block that it is compiled for. With
/// `static constexpr bool starts_early = true` the GPU sets it up while the stream's earlier kernel ends (programmatic
/// dependent launch), where it is compiled for compute capability 9.0 or later; it begins when that has ended, as
/// always.

#include <type_traits>

#include "beeline/host/impl/launch.hpp"
#include "beeline/host/launch_options.hpp"
#include "beeline/host/world.hpp"

namespace beeline {

/// Starts `kernel(grid, context, args...)` on this rank's device, with the team's context: its peers are ranks of the
/// team. Asynchronous. Kernel and arguments travel as bytes, so they are trivially copyable: pointers, numbers,
/// structures of these. Throws no_resource when a waiting grid could
/// not be resident beside what already waits on the device (naming both), unavailable when the rank is a GPU and this
/// file was compiled without CUDA.
template <class Kernel, class... Args>
void launch(Team& team, const LaunchOptions& options, const Kernel& kernel, Args&&... args) {
  constexpr bool travels = (detail::travels_as_bytes<Kernel> && ... && detail::travels_as_bytes<std::decay_t<Args>>);
  static_assert(travels,
                "a kernel and its arguments are copied to the device as bytes: they must be trivially copyable (pass "
                "data(), not the array)");
  if constexpr (travels) {  // else the compiler goes on with errors inside the library
    constexpr bool callable = detail::is_kernel<Kernel, std::decay_t<Args>...>;
    static_assert(callable,
                  "the kernel has no operator()(Grid& grid, const Context& ctx, args...) const for these arguments");
    if constexpr (callable) detail::launch_kernel<Kernel, std::decay_t<Args>...>(team, options, kernel, args...);
  }
}

/// Blocks of `threads` threads of this kernel that may wait on this rank at once: its share of what the device holds.
/// On a host rank as many as its share of the cores runs at once, `threads` or not; a grid may have more, up to
/// `max_host_threads` CPU threads, which then take turns on the cores.
template <class Kernel, class... Args>
[[nodiscard]] unsigned resident_blocks(World& world, unsigned threads) {
  return detail::resident_blocks<Kernel, Args...>(world, threads);
}
/// The same of the kernel and the arguments that `launch` is to get.
template <class Kernel, class... Args>
[[nodiscard]] unsigned resident_blocks(World& world, unsigned threads, const Kernel& /*kernel*/, Args&&... /*args*/) {
  return detail::resident_blocks<Kernel, std::decay_t<Args>...>(world, threads);
}

}  // namespace beeline
