// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Dynamic distribution of pieces of work to the warps of a grid, so that multiprocessors with slower access to the
/// other ranks do less.

#include <cstdint>

#include "beeline/device/impl/warp_machine.hpp"
#include "beeline/device/wait.hpp"

namespace beeline::detail {

/// One warp's pieces of `count`: first the piece with the warp's number, then pieces that it draws from the grid's
/// counter. A warp draws once for each of its pieces, so the grid draws `count` times; the last draw sets the counter
/// to 0 for the next kernel.
///   for (DrawnPieces pieces(counter, warp, warps, count); pieces.any(); pieces.next()) { pieces.draw(); ... }
class DrawnPieces {
 public:
  BEELINE_HOST_DEVICE DrawnPieces(std::uint32_t* counter, std::uint32_t warp, std::uint32_t warps, std::uint32_t count)
      : counter_(*counter), piece_(warp), warps_(warps), count_(count) {}

  [[nodiscard]] BEELINE_HOST_DEVICE bool any() const { return piece_ < count_; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t piece() const { return piece_; }
  /// Draws the next piece; its number arrives while the present piece is processed.
  BEELINE_HOST_DEVICE void draw() {
    drawn_ = machine::lane() == 0 ? counter_.fetch_add(1, std::memory_order_relaxed) : 0;
  }
  BEELINE_HOST_DEVICE void next() {
    if (machine::lane() == 0 && drawn_ + 1 == count_) counter_.store(0, std::memory_order_relaxed);
    piece_ = warps_ + static_cast<std::uint32_t>(machine::from_lane(drawn_, 0));
  }

 private:
  DeviceAtomic<std::uint32_t> counter_;
  std::uint32_t piece_, drawn_ = 0;
  const std::uint32_t warps_, count_;
};

}  // namespace beeline::detail
