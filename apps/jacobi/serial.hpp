// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The serial reference: a loop nest over ordinary arrays, without code shared with the methods' sweep.

#include <cstddef>
#include <vector>

#include "problem.hpp"

namespace jacobi {

/// The whole grid in host memory. Its values do not depend on the number of threads, bit for bit; threads only speed it
/// up.
class Serial {
 public:
  Serial(const Size& size, int threads);

  /// Runs `iterations` more Jacobi iterations.
  void advance(int iterations);
  /// The field, [rows + 2][columns + 2], boundary included.
  [[nodiscard]] const std::vector<float>& field() const { return field_; }
  /// Largest change of a point in the last iteration; 0 before the first.
  [[nodiscard]] float max_change() const;

 private:
  void sweep_row(std::size_t row);

  Size size_;
  int threads_;
  std::vector<float> field_, next_;  ///< between calls `next_` holds the field before the last iteration
};

}  // namespace jacobi
