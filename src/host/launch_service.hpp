// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The launch service: a device thread that starts the kernels requested by workers of tasks
/// (control/impl/task_kernel.hpp), without the CPU, by launching graphs. Only a kernel that is part of a graph may
/// launch graphs, and it needs relocatable device code. Only src/host/launch_service.cpp is compiled with that, and
/// device-linked inside the library. Source: CUDA C++ Programming Guide, device graph launch.

#include <cstdint>

#include "beeline/control/impl/task_kernel.hpp"
#include "runtime/residency.hpp"

namespace beeline {

class Stream;
class Team;
class World;

/// Number of graphs that one run of a graph may launch from the device (fire and forget).
inline constexpr std::uint32_t most_fired_graphs = 120;

/// Counts of the service, in device memory.
struct LaunchCounts {
  std::uint64_t fired;       ///< graphs
  std::uint64_t refused;     ///< launches that the device refused, mostly because the graph still ran; repeated
  std::uint64_t handed;      ///< kernels left to the engine after `retry_ns` of refusals
  std::uint64_t last_error;  ///< the cudaError_t of the last refusal
};

/// Parameters of a lease of the service.
struct LaunchServiceTerms {
  detail::TaskCalls kernels;
  LaunchCounts* counts;
  std::uint64_t* over;  ///< leases that have ended, in host memory; nullptr: a lease ends at once
  std::uint32_t calls;  ///< number of calls that the lease polls
  /// Time for which a refused launch is repeated; half a lease if that is shorter.
  static constexpr std::uint64_t retry_ns = 1'000'000;
};

/// Launches one lease on a stream that records it.
void launch_service(Team& team, Stream& stream, const LaunchServiceTerms& terms);
/// Launches a kernel that only ends as `TaskGrid` does, to test whether the device can launch graphs.
void launch_trial(Team& team, Stream& stream, detail::TaskCall* call);
/// The room on the device that the service takes.
[[nodiscard]] ReservedRoom room_of_launch_service(World& world);

}  // namespace beeline
