// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The address range's use of CUDA. Two implementations: cuda_memory.cpp, and no_cuda_memory.cpp without CUDA.

#include <cstddef>
#include <vector>

#include "beeline/runtime/file_descriptor.hpp"

namespace beeline::gpu_memory {

/// Reserves [address, address + bytes) for device memory. Returns false if the driver gives another address.
[[nodiscard]] bool reserve(std::byte* address, std::size_t bytes);
/// As `reserve`, at an address that the driver chooses. Throws no_resource.
[[nodiscard]] std::byte* reserve_anywhere(std::size_t bytes);
void release(std::byte* address, std::size_t bytes);

/// Makes memory of `gpu` at a reserved address, accessible to `gpus`. Returns a descriptor for other processes.
[[nodiscard]] FileDescriptor create(std::byte* address, std::size_t bytes, int gpu, const std::vector<int>& gpus);
void map(std::byte* address, std::size_t bytes, int descriptor, const std::vector<int>& gpus);
void unmap(std::byte* address, std::size_t bytes);
/// Keeps a copy of the descriptor of memory that is mapped at `address`, until the memory is unmapped.
void keep_descriptor(const std::byte* address, int descriptor);
/// A descriptor by which others can map the memory that begins at `address`. For memory made by another process this
/// needs a kept descriptor (`keep_descriptor`). Throws no_resource, with the reason, if keeping it had failed.
[[nodiscard]] FileDescriptor descriptor_of(const std::byte* address);

/// Makes host memory accessible to every GPU of this process, at the memory's own address.
void register_host(std::byte* address, std::size_t bytes);
void unregister_host(std::byte* address);

}  // namespace beeline::gpu_memory
