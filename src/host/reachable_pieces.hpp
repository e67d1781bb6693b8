// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The list of memory that the kernels of a rank reach, for a resident block that carries out commands.

#include <cstddef>
#include <cstdint>
#include <span>

#include "beeline/host/team.hpp"
#include "beeline/transport/stream.hpp"
#include "control/service_block.hpp"

namespace beeline {

class ReachablePieces {
 public:
  /// Collective.
  explicit ReachablePieces(Team& team) : team_(team), pieces_(team, most), shown_(team, most, Heap::pinned) {}

  /// Copies the list to the device, if it has changed. No memory is unmapped meanwhile.
  void show(Stream& stream);
  /// The list in memory of the device.
  [[nodiscard]] const ReachablePiece* data() const { return pieces_.data(); }
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(count_); }

 private:
  /// Largest number of pieces that a block knows. Commands on other memory are not for the block.
  static constexpr std::size_t most = 1024;
  [[nodiscard]] bool is_reachable(std::span<const std::byte> piece) const;

  Team& team_;
  SymmetricArray<ReachablePiece> pieces_, shown_;  ///< the list, and its copy in host memory
  std::size_t count_ = 0;
};

}  // namespace beeline
