// SPDX-License-Identifier: Apache-2.0
// The twin of cuda_memory.cpp in builds without CUDA: no rank has a GPU, so nothing here is reached.
#include "beeline/core/error.hpp"
#include "memory/gpu_memory.hpp"

namespace beeline::gpu_memory {

namespace {
[[noreturn]] void unavailable() { throw Error(Status::unavailable, "this build has no CUDA"); }
}  // namespace

bool reserve(std::byte*, std::size_t) { unavailable(); }
void release(std::byte*, std::size_t) {}
FileDescriptor create(std::byte*, std::size_t, int, const std::vector<int>&) { unavailable(); }
void map(std::byte*, std::size_t, int, const std::vector<int>&) { unavailable(); }
void unmap(std::byte*, std::size_t) {}
void register_host(std::byte*, std::size_t) { unavailable(); }
void unregister_host(std::byte*) {}

}  // namespace beeline::gpu_memory
