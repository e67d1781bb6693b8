// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The shape of a launch.

#include "beeline/transport/stream.hpp"

namespace beeline {

/// CPU threads that a host rank's waiting grids may have together.
inline constexpr unsigned max_host_threads = 64;

/// Shape and conditions of a launch.
struct LaunchOptions {
  unsigned blocks = 1;
  unsigned threads = 256;  ///< a block's, on a GPU; a host rank runs a block on `host_threads` CPU threads
  bool waits = false;  ///< its threads wait for others (signals, barriers, `grid.sync`): every block must be resident
  Stream* stream = nullptr;  ///< nullptr: the rank's default stream
  /// Waiting launches that give the same take turns on whatever streams, as calls of one channel do: only the largest
  /// needs room on the device.
  const void* serialization_key = nullptr;
  const char* name = nullptr;  ///< what errors call the kernel, a literal, as `allreduce`; nullptr: its type
};

}  // namespace beeline
