// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A triggered operation that a kernel carries out after the stream's wait, unless it was cancelled, or the wait was
/// released only to drain the stream.

#include <cstddef>
#include <cstdint>

#include "beeline/core/macros.hpp"
#include "beeline/core/operation.hpp"

namespace beeline {

/// Bytes to copy, or a signal to set, as addresses of this process.
struct StreamMove {
  void* to = nullptr;  ///< nullptr: `signal` is set
  const void* from = nullptr;
  std::size_t bytes = 0;
  std::uint64_t* signal = nullptr;
  std::uint64_t value = 0;
  /// Of a guarded move: the rank of the team, at one end, that only this rank's engine reaches; `no_peer`: there is
  /// none
  std::uint32_t peer = no_peer;
  bool puts = true;  ///< to `peer`, not from there
};

/// Words by which host and kernel agree whether an operation is carried out. They are in host memory, where GPUs and
/// CPUs share no atomics: each side stores its own word, fences, and then reads the other word, so that at least one
/// side sees the other's store.
struct GuardWords {
  enum Verdict : std::uint64_t { open, looks, skips, moves };
  std::uint64_t cancelled;  ///< written by the host: number of the last operation that it has cancelled
  std::uint64_t decided;    ///< written by the kernel: number of its operation, and the verdict

  [[nodiscard]] static BEELINE_HOST_DEVICE constexpr std::uint64_t decision(std::uint64_t number, Verdict verdict) {
    return number * 4 + verdict;
  }
};

/// The guard of one operation.
struct MoveGuard {
  const std::uint64_t* released;  ///< in host memory; set before waits are released
  GuardWords* words;              ///< of this operation, and of earlier operations of its stream
  std::uint64_t* verdict;         ///< of the stream, in memory of the device: the last decision of its kernels
  std::uint64_t number;           ///< of the operation in its stream, from 1 on
};

}  // namespace beeline
