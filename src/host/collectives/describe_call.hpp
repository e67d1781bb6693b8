// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Collective calls in the words of errors.

#include <string>

#include "beeline/collectives/operation.hpp"

namespace beeline {

/// A call, as far as its operation has the arguments: `allreduce(sum, float32, 1024 elements) by ll_one_shot`. Without
/// the algorithm if it has not been chosen.
///   in_blocks  with their number
[[nodiscard]] std::string describe_call(const CallDescription& call, bool in_blocks = false);

}  // namespace beeline
