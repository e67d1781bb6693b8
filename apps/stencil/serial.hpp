// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The serial reference: a loop nest over ordinary arrays, without code shared with the methods' sweep.

#include <cstddef>
#include <vector>

#include "problem.hpp"

namespace stencil {

/// The whole volume in host memory. Its values do not depend on the number of threads, bit for bit; threads only speed
/// it up.
class Serial {
 public:
  Serial(const Size& size, int threads);

  /// Runs `steps` more steps.
  void advance(int steps);
  /// The field, [z + 8][y + 8][x + 8], boundary included.
  [[nodiscard]] const std::vector<float>& field() const { return field_; }

 private:
  void sweep_plane(std::size_t plane);

  Size size_;
  int threads_;
  std::vector<float> field_, next_;
};

}  // namespace stencil
