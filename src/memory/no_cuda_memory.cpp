// SPDX-License-Identifier: Apache-2.0
// Replaces cuda_memory.cpp in builds without CUDA: no rank has a GPU, so these functions are never called.
#include "beeline/core/error.hpp"
#include "memory/gpu_memory.hpp"

namespace beeline::gpu_memory {

namespace {
[[noreturn]] void no_memory_of_gpus() { throw Error(Status::unavailable, "this build has no CUDA"); }
}  // namespace

bool reserve(std::byte*, std::size_t) { no_memory_of_gpus(); }
std::byte* reserve_anywhere(std::size_t) { no_memory_of_gpus(); }
void release(std::byte*, std::size_t) {}
FileDescriptor create(std::byte*, std::size_t, int, const std::vector<int>&) { no_memory_of_gpus(); }
void map(std::byte*, std::size_t, int, const std::vector<int>&) { no_memory_of_gpus(); }
void unmap(std::byte*, std::size_t) {}
void keep_descriptor(const std::byte*, int) {}
FileDescriptor descriptor_of(const std::byte*) { no_memory_of_gpus(); }
void register_host(std::byte*, std::size_t) { no_memory_of_gpus(); }
void unregister_host(std::byte*) {}

}  // namespace beeline::gpu_memory
