// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Who has which grid state of a rank: its streams, and the graphs that were captured from them.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "beeline/runtime/device.hpp"
#include "beeline/transport/stream.hpp"
#include "host/world/areas.hpp"
#include "runtime/residency.hpp"

namespace beeline {

/// Thread-safe. It outlives the streams to which it lends; graphs may outlive it.
class Grids {
 public:
  ///   states  [max_streams]
  ///   device  whose ledger the rank's waiting grids are booked in
  Grids(PaddedGridState* states, const Device& device);

  /// A grid state for one stream; given back, and its line in the ledger closed, when the stream lets it go. Throws
  /// no_resource.
  [[nodiscard]] std::shared_ptr<GridState> lend();
  /// What a waiting kernel gets that is captured from a stream: each graph has a grid state of its own, and all graphs
  /// of the stream share an entry in the ledger.
  struct GraphGrid {
    GridState* state;
    const void* booking;
  };
  [[nodiscard]] GraphGrid for_graph(Stream& on, std::uint64_t capture);
  [[nodiscard]] ResidencyLedger& ledger() { return ledger_; }

 private:
  /// Grid states that nothing uses, by index. It outlives the world where graphs still hold others.
  struct Free;
  /// What waiting kernels that were captured from one stream hold of the device, until the last of their graphs is
  /// gone.
  class Booking;
  /// What was captured from a stream last.
  struct Captured {
    std::uint64_t capture = 0;
    std::weak_ptr<GridState> grid;
    std::weak_ptr<Booking> booking;
  };
  [[nodiscard]] std::shared_ptr<GridState> take() const;

  PaddedGridState* const states_;
  ResidencyLedger own_ledger_;  ///< of a host rank
  ResidencyLedger& ledger_;
  const std::shared_ptr<Free> free_;
  std::mutex mutex_;
  std::map<const void*, Captured> captured_;  ///< by stream (its grid state); guarded by mutex_
};

}  // namespace beeline
