// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The reference for the methods' results.

#include <vector>

#include "beeline/host/world.hpp"
#include "common/reference.hpp"
#include "problem.hpp"

namespace himeno {

/// The serial reference after some iterations; only rank 0 has the field.
struct Expectation {
  int iterations = 0;
  std::vector<float> field;
  double gosa = 0;
  float gosa_float32 = 0;
};

/// Collective. Runs the serial reference on rank 0, on all threads of its CPU; the other ranks wait without a deadline.
/// Runs at least one iteration, then at most `iterations` and only as many as fit into `seconds`.
[[nodiscard]] Expectation expect(beeline::World& world, const Size& size, Data data, int iterations, double seconds);

/// The difference between a result and the reference.
struct Comparison {
  double max_error = 0;   ///< largest absolute difference of the pressure
  double gosa_error = 0;  ///< relative to the float64 sum
  /// Whether both errors are within tolerance: float rounding for the field, 1e-5 for gosa.
  [[nodiscard]] bool good() const;
};
[[nodiscard]] Comparison compare(const Expectation& expected, const std::vector<float>& field, double gosa);

using apps::checksum;

}  // namespace himeno
