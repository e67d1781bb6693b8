// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Statistics of a rank's engine.

#include <cstdint>

namespace beeline {

/// Sums over the threads of an engine since it was made.
struct EngineStatistics {
  std::uint64_t commands = 0;    ///< commands begun, refused ones included
  std::uint64_t bytes = 0;       ///< moved, words included
  std::uint64_t refused = 0;     ///< commands that the engine refused
  std::uint64_t deepest = 0;     ///< largest number of commands taken from a queue at once; 64 is the limit
  std::uint64_t sleeps = 0;      ///< number of times that an idle thread went to sleep
  std::uint64_t leases = 0;      ///< number of times that the service block of a device engine was started
  double cpu_s = 0;              ///< CPU time of the engine's threads, seconds
  std::uint64_t cpu_stores = 0;  ///< words and payloads that the engine's threads stored directly into GPU memory
  std::uint64_t batches = 0;     ///< number of batches; a batch is the commands of a queue that were begun together
  double begin_s = 0;            ///< from the taking of a batch until its submission to the device, seconds; 0 unless
                                 ///< the engine is timed
  double work_s = 0;             ///< from the submission until the engine has seen the batch's end, seconds; 0 unless
                                 ///< the engine is timed
};

}  // namespace beeline
