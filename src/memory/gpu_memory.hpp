// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the address range needs of CUDA. Two implementations: cuda_memory.cpp, and no_cuda_memory.cpp without CUDA.

#include <cstddef>
#include <vector>

#include "beeline/runtime/file_descriptor.hpp"

namespace beeline::gpu_memory {

/// Reserves [address, address + bytes) for device memory; false when the driver gives another place.
[[nodiscard]] bool reserve(std::byte* address, std::size_t bytes);
void release(std::byte* address, std::size_t bytes);

/// Makes memory of `gpu` at a reserved address, readable and writable by `gpus`; returns a descriptor to share it by.
[[nodiscard]] FileDescriptor create(std::byte* address, std::size_t bytes, int gpu, const std::vector<int>& gpus);
void map(std::byte* address, std::size_t bytes, int descriptor, const std::vector<int>& gpus);
void unmap(std::byte* address, std::size_t bytes);
/// Keeps a copy of the descriptor of memory that is mapped at `address`, until it is unmapped.
void keep_descriptor(const std::byte* address, int descriptor);
/// A descriptor of the memory that begins at `address`, by which others can map it, too: of what another process has
/// made only where one was kept. Throws no_resource with the reason where it could not be.
[[nodiscard]] FileDescriptor descriptor_of(const std::byte* address);

/// Makes host memory reachable by every GPU of this process, at its own address.
void register_host(std::byte* address, std::size_t bytes);
void unregister_host(std::byte* address);

}  // namespace beeline::gpu_memory
