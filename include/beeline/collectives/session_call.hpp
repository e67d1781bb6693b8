// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How a collective is called on a session.

#include "beeline/collectives/algorithm.hpp"
#include "beeline/device/bulk.hpp"

namespace beeline {

/// What the kernels' calls have in common; the same on all members, but for the buffer.
struct SessionCall {
  Timeout timeout = Timeout::none();           ///< the call's own limit; after `timeout` the same call continues
  Algorithm algorithm = Algorithm::automatic;  ///< of those that the operation has
  BulkBuffer* buffer = nullptr;                ///< for bulk on a GPU: the block's shared memory (device/bulk.hpp)
};

}  // namespace beeline
