// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The largest change of a point in an iteration, over all ranks, which decides when to stop.

#include <cstdint>

#include "beeline/host/collectives.hpp"
#include "domain.hpp"

namespace jacobi {

class Residual {
 public:
  /// Collective.
  explicit Residual(Domain& domain);

  /// Collective, called after an iteration. The largest change of that iteration, the same on every rank; NaN if a
  /// change is NaN.
  [[nodiscard]] float max_change();

 private:
  Domain& domain_;
  beeline::Collectives collectives_;
  beeline::SymmetricArray<std::uint32_t> bits_;
  unsigned blocks_;
};

}  // namespace jacobi
