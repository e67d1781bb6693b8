// SPDX-License-Identifier: Apache-2.0
// expect: reductions are of float, double
#include <cstdint>

#include "beeline/host/collectives.hpp"

void misuse(beeline::Collectives& collectives, const beeline::SymmetricArray<std::uint16_t>& vector) {
  collectives.allreduce(vector);
}
