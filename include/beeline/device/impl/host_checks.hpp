// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Data by which CPU threads check calls. Kernels do not read them.

#include <bitset>
#include <cstddef>
#include <cstdint>

#include "beeline/core/layout.hpp"
#include "beeline/device/impl/allocation_map.hpp"

namespace beeline::detail {

/// Receives reports of signals that a wait cannot distinguish from the previous signal (BEELINE_CHECK). Any thread
/// calls it.
class RepeatedSignals {
 public:
  virtual ~RepeatedSignals() = default;
  /// Reports that a signal is set to the value that it already has.
  ///   sender, receiver  world ranks; offset the signal's offset in the receiver's slot
  virtual void report(std::uint32_t sender, std::uint32_t receiver, std::uint64_t offset, std::uint64_t value) = 0;
};

/// Constant while operations run, except for `allocations`.
struct HostChecks {
  AllocationMap allocations;
  std::bitset<max_ranks> mapped;                ///< world ranks whose memory this process has mapped
  std::bitset<max_ranks> on_gpus;               ///< world ranks whose symmetric heap is GPU memory
  RepeatedSignals* repeated_signals = nullptr;  ///< nullptr: signals are not checked
  bool is_forked = false;                       ///< whether this process is a fork of the process that made the world

  /// Whether operations may use this range of the rank's slot.
  [[nodiscard]] bool holds(std::uint64_t offset, std::size_t bytes) const {
    return !is_forked && allocations.holds(offset, bytes);
  }
};

}  // namespace beeline::detail
