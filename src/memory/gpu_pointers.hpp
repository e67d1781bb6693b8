// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What CUDA reports about memory. Two implementations: cuda_pointers.cpp, and no_cuda_pointers.cpp without CUDA.

#include <array>
#include <cstddef>
#include <cstdint>

namespace beeline::gpu_memory {

enum class PointerKind { host, pinned, device, managed };

/// The kind of memory that a pointer refers to; `gpu` is -1 for host memory.
struct PointerInfo {
  PointerKind kind = PointerKind::host;
  int gpu = -1;
};
[[nodiscard]] PointerInfo describe(const void* pointer);

/// Bytes from `pointer` to the end of its allocation in the memory of `gpu`.
[[nodiscard]] std::size_t bytes_behind(const void* pointer, int gpu);

/// CUDA's id of the allocation that contains a pointer, never used for another allocation; 0 if there is none.
[[nodiscard]] std::uint64_t allocation_id(const void* pointer, int gpu);
/// An allocation in the memory of a GPU; 0 bytes if there is none.
struct Allocation {
  std::uintptr_t start = 0;
  std::size_t bytes = 0;
  std::uint64_t id = 0;
};
[[nodiscard]] Allocation allocation_at(const void* pointer, int gpu);

/// Identifies an allocation for other processes, and the pointer's offset in it.
struct IpcHandle {
  std::array<unsigned char, 64> bytes;
  std::size_t offset;
};
/// Throws invalid_argument for memory that CUDA does not share by IPC handles.
[[nodiscard]] IpcHandle export_ipc(const void* pointer, int gpu);
/// Maps the allocation for `gpu`. Returns its start. Throws unreachable.
[[nodiscard]] std::byte* open_ipc(const IpcHandle& handle, int gpu);
void close_ipc(std::byte* start, int gpu);

/// Lets kernels of GPU `from` access cudaMalloc memory on GPU `to`. Returns false if they cannot.
[[nodiscard]] bool enable_peer(int from, int to);

}  // namespace beeline::gpu_memory
