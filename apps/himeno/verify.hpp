// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the methods' results are compared with.

#include <vector>

#include "beeline/host/world.hpp"
#include "common/reference.hpp"
#include "problem.hpp"

namespace himeno {

/// The serial reference after some iterations; the field on rank 0 only.
struct Expectation {
  int iterations = 0;
  std::vector<float> field;
  double gosa = 0;
  float gosa_float32 = 0;
};

/// Collective. Runs the serial reference on rank 0, on all of its CPU's threads, while the others wait without regard
/// to the deadline. At most `iterations`, and no more than fit into `seconds` (but one).
[[nodiscard]] Expectation expect(beeline::World& world, const Size& size, Data data, int iterations, double seconds);

/// How far a result is from the reference.
struct Comparison {
  double max_error = 0;   ///< largest absolute difference of the pressure
  double gosa_error = 0;  ///< relative to the float64 sum
  /// Float tolerance for the field, 1e-5 for gosa.
  [[nodiscard]] bool good() const;
};
[[nodiscard]] Comparison compare(const Expectation& expected, const std::vector<float>& field, double gosa);

using apps::checksum;

}  // namespace himeno
