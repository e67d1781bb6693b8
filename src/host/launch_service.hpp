// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The launch service: a thread of the device that starts the kernels which workers of tasks ask for
/// (control/impl/task_kernel.hpp), without the CPU, by launching graphs. Only a kernel that is part of a graph itself
/// may do so, and it needs relocatable device code: src/host/launch_service.cpp alone is compiled so, and linked for
/// the device inside the library.
/// Source: CUDA C++ Programming Guide, device graph launch.

#include <cstdint>

#include "beeline/control/impl/task_kernel.hpp"

namespace beeline {

class Stream;
class Team;
class World;

/// Graphs that a graph may launch from the device (fire and forget), each time that it runs itself.
inline constexpr std::uint32_t most_fired_graphs = 120;

/// What the service has done, in the device's memory.
struct LaunchCounts {
  std::uint64_t fired;       ///< graphs
  std::uint64_t refused;     ///< launches that the device refused, most of them since the graph still ran; repeated
  std::uint64_t handed;      ///< kernels that it has left to the engine, after `patience_ns` of refusals
  std::uint64_t last_error;  ///< the cudaError_t of the last refusal
};

/// What a lease of the service goes by.
struct LaunchServiceTerms {
  detail::TaskCalls kernels;
  LaunchCounts* counts;
  std::uint64_t* over;  ///< leases that have ended, in host memory; where there is none, a lease ends at once
  std::uint32_t calls;  ///< that it looks at
  /// So long a refused launch is repeated; half a lease if that is shorter.
  static constexpr std::uint64_t patience_ns = 1'000'000;
};

/// Launches one lease on a stream, to be recorded.
void launch_service(Team& team, Stream& stream, const LaunchServiceTerms& terms);
/// Launches a kernel that does nothing but end as `TaskGrid` does: the trial of whether devices launch graphs.
void launch_trial(Team& team, Stream& stream, detail::TaskCall* call);
/// Blocks of the service that the rank's share of the device holds at once.
[[nodiscard]] unsigned resident_launch_services(World& world);

}  // namespace beeline
