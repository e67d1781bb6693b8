// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a rank's engine has done.

#include <cstdint>

namespace beeline {

/// Sums over the threads of an engine since it was made.
struct EngineStatistics {
  std::uint64_t commands = 0;    ///< commands begun, with refused ones
  std::uint64_t bytes = 0;       ///< moved, words included
  std::uint64_t refused = 0;     ///< commands that it could not do
  std::uint64_t deepest = 0;     ///< largest number of commands taken from a queue at once; 64 is the limit
  std::uint64_t sleeps = 0;      ///< number of times that an idle thread went to sleep
  std::uint64_t leases = 0;      ///< of a device engine: times that its service block was started
  double cpu_s = 0;              ///< CPU time of its threads, seconds
  std::uint64_t cpu_stores = 0;  ///< words and payloads that its threads stored into GPU memory by themselves
  std::uint64_t batches = 0;     ///< commands of a queue that were begun together
  double begin_s = 0;            ///< from taking a batch until the device has it, seconds; 0 unless it is timed
  double work_s = 0;             ///< from then until the engine has seen its end; 0 unless it is timed
};

}  // namespace beeline
