// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reductions by name, of which an operation has some:
///
/// | operation      | algorithms                                                  |
/// |----------------|-------------------------------------------------------------|
/// | reduce         | packets, two_shot, read, gather, alltoall_gather, tree      |
/// | all-reduce     | read, gather_cast, allgather, alltoall_allgather, tree, bulk |
/// | reduce-scatter | packets, read, peer, bulk                                   |

#include "beeline/collectives/algorithm.hpp"

namespace beeline::detail {

/// Whether the operation has the algorithm. All-reduce has others besides (allreduce.hpp).
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool reduces_by(Algorithm algorithm, bool scatters, bool has_root) {
  switch (algorithm) {
    case Algorithm::packets:
      return scatters || has_root;
    case Algorithm::read:
      return true;
    case Algorithm::peer:
      return scatters;
    case Algorithm::two_shot:
    case Algorithm::gather:
    case Algorithm::alltoall_gather:
      return has_root;
    case Algorithm::gather_cast:
    case Algorithm::allgather:
    case Algorithm::alltoall_allgather:
      return !scatters && !has_root;
    case Algorithm::tree:
      return !scatters;
    case Algorithm::bulk:
      return !has_root;
    default:
      return false;
  }
}

}  // namespace beeline::detail
