// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Assigns a rank's grid states to its streams, and to the graphs that were captured from them.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "beeline/runtime/device.hpp"
#include "beeline/transport/stream.hpp"
#include "host/world/areas.hpp"
#include "runtime/residency.hpp"

namespace beeline {

/// Thread-safe. Outlives the streams that use its grid states; graphs may outlive this object.
class Grids {
 public:
  ///   states  [max_streams]
  ///   device  its ledger books the rank's waiting grids
  Grids(PaddedGridState* states, const Device& device);

  /// A grid state for one stream. When the stream releases it, it becomes free and its entry in the ledger is closed.
  /// Throws no_resource.
  [[nodiscard]] std::shared_ptr<GridState> lend();
  /// Grid state and ledger entry of a captured waiting kernel. Each graph has a grid state of its own; all graphs of a
  /// stream share an entry in the ledger.
  struct GraphGrid {
    GridState* state;
    const void* booking;
  };
  [[nodiscard]] GraphGrid for_graph(Stream& on, std::uint64_t capture);
  [[nodiscard]] ResidencyLedger& ledger() { return ledger_; }

 private:
  /// Unused grid states, by index. Outlives the world if graphs still hold grid states.
  struct Free;
  /// The device's share that is booked for waiting kernels captured from one stream, until their last graph is
  /// destroyed.
  class Booking;
  /// The last capture from a stream.
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
