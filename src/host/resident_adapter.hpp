// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The host's part of a software adapter whose rings a resident block serves (control/adapters/adapter_block.hpp). Each
/// format's kernel is compiled in resident_adapters.cpp.

#include <optional>

#include "beeline/host/team.hpp"
#include "control/adapters/adapter_block.hpp"
#include "host/leased_grid.hpp"
#include "host/reachable_pieces.hpp"

namespace beeline {

template <class Server>
class ResidentAdapter {
 public:
  /// Collective. Runs a first lease.
  ///   rings  [count] in this rank's symmetric heap
  ///   name   for errors
  ResidentAdapter(Team& team, typename Server::Ring* rings, std::uint32_t count, const char* name);
  /// Collective. Waits for the end of the current lease.
  ~ResidentAdapter() { grid_.reset(); }
  ResidentAdapter(const ResidentAdapter&) = delete;
  ResidentAdapter& operator=(const ResidentAdapter&) = delete;

  /// The word that a poster sets if it finds the block asleep.
  [[nodiscard]] std::uint64_t* wanted() const { return grid_->terms().wanted; }
  /// Calls `change` while no lease runs.
  void between_leases(const std::function<void()>& change) { grid_->between_leases(change); }

 private:
  void start(Stream& stream, const Lease& lease);

  Team& team_;
  typename Server::Ring* const rings_;
  const std::uint32_t count_;
  const char* const name_;
  ReachablePieces pieces_;
  SymmetricArray<AdapterMove> moves_;
  std::optional<LeasedGrid> grid_;
};

}  // namespace beeline
