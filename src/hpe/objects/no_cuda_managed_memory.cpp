// SPDX-License-Identifier: Apache-2.0
// Replaces cuda_managed_memory.cpp in builds without CUDA.
#include "beeline/core/error.hpp"
#include "hpe/objects/managed_memory.hpp"

namespace beeline::hpe::detail {

std::byte* allocate_managed(int, std::size_t) { throw Error(Status::unavailable, "this build has no CUDA"); }

}  // namespace beeline::hpe::detail
