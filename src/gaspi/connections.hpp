// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which ranks the program has connected. Ranks of a world always reach each other, so a connection is only the
/// program's permission to transfer.

#include <atomic>
#include <cstddef>
#include <memory>

namespace beeline::gaspi {

/// Thread-safe.
class Connections {
 public:
  /// All ranks are connected, or none but the own.
  Connections(int ranks, int own, bool all)
      : connected_(std::make_unique<std::atomic<bool>[]>(static_cast<std::size_t>(ranks))) {
    for (int rank = 0; rank < ranks; ++rank) set(rank, all || rank == own);
  }
  [[nodiscard]] bool is_connected(int rank) const {
    return connected_[static_cast<std::size_t>(rank)].load(std::memory_order_relaxed);
  }
  void set(int rank, bool connected) {
    connected_[static_cast<std::size_t>(rank)].store(connected, std::memory_order_relaxed);
  }

 private:
  std::unique_ptr<std::atomic<bool>[]> connected_;
};

}  // namespace beeline::gaspi
