// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The shape of a launch.

#include "beeline/transport/stream.hpp"

namespace beeline {

/// Largest number of CPU threads of all waiting grids of a host rank together.
inline constexpr unsigned max_host_threads = 64;

/// Shape and conditions of a launch.
struct LaunchOptions {
  unsigned blocks = 1;
  unsigned threads = 256;  ///< threads of a block on a GPU; on a host rank a block has `Config::host_threads` CPU
                           ///< threads
  bool waits = false;  ///< whether threads wait for others (signals, barriers, `grid.sync`): all blocks are resident
  Stream* stream = nullptr;  ///< nullptr: the rank's default stream
  /// Waiting launches with the same key never run at the same time, on whichever streams, like the calls of one
  /// channel. So only the largest of them needs room on the device.
  const void* serialization_key = nullptr;
  const char* name = nullptr;  ///< the kernel's name in errors, a string literal; nullptr: the name of its type
};

}  // namespace beeline
