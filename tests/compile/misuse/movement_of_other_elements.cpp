// SPDX-License-Identifier: Apache-2.0
// expect: destination and source have one element type
#include "beeline/host/collectives.hpp"

void misuse(beeline::Collectives& collectives, const beeline::SymmetricArray<float>& to,
            const beeline::SymmetricArray<int>& from) {
  collectives.allgather(to, from);
}
