// SPDX-License-Identifier: Apache-2.0
// Replaces cuda_window.cpp in builds without CUDA.
#include "beeline/core/error.hpp"
#include "beeline/runtime/gpu_place.hpp"
#include "memory/gpu_window.hpp"

namespace beeline {

std::shared_ptr<const gpu_memory::Window> gpu_memory::open_window(std::span<const std::byte>) {
  throw Error(Status::unavailable, "this build has no CUDA");
}

std::string no_cpu_stores_reason(int) { return "this build has no CUDA"; }

}  // namespace beeline
