// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What CUDA knows of memory that it or others have allocated. Two implementations: cuda_pointers.cpp, and
/// no_cuda_pointers.cpp without CUDA.

#include <array>
#include <cstddef>
#include <cstdint>

namespace beeline::gpu_memory {

enum class PointerKind { host, pinned, device, managed };

/// What a pointer leads to; `gpu` is -1 for host memory.
struct PointerInfo {
  PointerKind kind = PointerKind::host;
  int gpu = -1;
};
[[nodiscard]] PointerInfo describe(const void* pointer);

/// Bytes from `pointer` to the end of its allocation in the memory of `gpu`.
[[nodiscard]] std::size_t bytes_behind(const void* pointer, int gpu);

/// The number of the allocation that holds a pointer, which no other has before or after; 0: none does.
[[nodiscard]] std::uint64_t allocation_id(const void* pointer, int gpu);
/// That allocation, in the memory of `gpu`. No bytes: there is none.
struct Allocation {
  std::uintptr_t start = 0;
  std::size_t bytes = 0;
  std::uint64_t id = 0;
};
[[nodiscard]] Allocation allocation_at(const void* pointer, int gpu);

/// Names an allocation for other processes, and where in it a pointer leads to.
struct IpcHandle {
  std::array<unsigned char, 64> bytes;
  std::size_t offset;
};
/// Throws invalid_argument for memory that CUDA does not share so.
[[nodiscard]] IpcHandle export_ipc(const void* pointer, int gpu);
/// Maps the allocation for `gpu`, and returns its start. Throws unreachable.
[[nodiscard]] std::byte* open_ipc(const IpcHandle& handle, int gpu);
void close_ipc(std::byte* start, int gpu);

/// Lets kernels of GPU `from` reach what cudaMalloc gave on GPU `to`; false where they cannot.
[[nodiscard]] bool enable_peer(int from, int to);

}  // namespace beeline::gpu_memory
