// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// This layer's use of CUDA. Two implementations: cuda_gpu.cpp, and no_cuda_gpu.cpp without CUDA.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "beeline/hpe/memory.hpp"

namespace beeline::hpe::gpu {

/// The owner of memory that CUDA knows; no value for other memory.
[[nodiscard]] std::optional<Owner> owner_of(const void* pointer);

/// Runs `call` with the GPU as the calling thread's current device; afterwards the device is the one before.
void on(int gpu, const std::function<void()>& call);

/// Whether the GPU is the calling thread's current device, and has its context there: calls that captures permit then
/// need no `on`, which takes longer.
[[nodiscard]] bool is_current(int gpu);

/// Enqueues a copy between memory that the GPU reaches, none of it pageable, on `stream` (a cudaStream_t of the GPU).
void enqueue_copy(int gpu, void* stream, void* to, const void* from, std::size_t bytes);

/// Holds later work of `stream` (a cudaStream_t of the GPU) until `*word >= value`, in pinned memory.
void enqueue_wait(int gpu, void* stream, std::uint64_t* word, std::uint64_t value);

/// Memory of a GPU. Throws no_resource.
[[nodiscard]] std::byte* allocate(int gpu, std::size_t bytes);
/// Waits for work on the GPU that uses the memory.
void free(int gpu, std::byte* start) noexcept;

/// The fault that made the GPU unusable for this process; empty while it works.
[[nodiscard]] std::string fault(int gpu);

}  // namespace beeline::hpe::gpu
