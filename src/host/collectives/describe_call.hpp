// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Descriptions of collective calls for errors.

#include <string>

#include "beeline/collectives/operation.hpp"

namespace beeline {

/// Describes a call with the arguments that its operation has: `allreduce(sum, float32, 1024 elements) by ll_one_shot`.
/// Omits the algorithm if none has been chosen.
///   in_blocks  adds the number of blocks
[[nodiscard]] std::string describe_call(const CallDescription& call, bool in_blocks = false);

}  // namespace beeline
