// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The serial reference: the official loop nest over ordinary arrays, without code shared with the methods' sweep.

#include <cstddef>
#include <vector>

#include "problem.hpp"

namespace himeno {

/// One grid in host memory. Its values do not depend on the number of threads, bit for bit; threads only speed it up.
class Serial {
 public:
  Serial(const Size& size, Data data, int threads);

  /// Runs `iterations` more Jacobi iterations.
  void advance(int iterations);
  /// The pressure [z][y][x], boundary included.
  [[nodiscard]] const std::vector<float>& field() const { return p_; }
  /// Sum of the squared residuals of the last iteration, accumulated in float64.
  [[nodiscard]] double gosa() const;
  /// The same sum as the C benchmark computes it: one float32 accumulator, in its order (i, j, k).
  [[nodiscard]] float gosa_float32() const;

 private:
  [[nodiscard]] std::size_t index(int x, int y, int z) const;
  [[nodiscard]] float residual(const std::vector<float>& p, std::size_t point) const;
  void sweep_plane(int z);
  void fill(Data data, int first_plane, int last_plane);

  Size size_;
  int threads_;
  std::size_t row_, plane_;
  std::vector<float> a_[4], b_[3], c_[3], bnd_, wrk1_;
  std::vector<float> p_, next_;     ///< between calls `next_` holds the field before the last iteration
  std::vector<double> plane_gosa_;  ///< [z], of the last iteration
};

}  // namespace himeno
