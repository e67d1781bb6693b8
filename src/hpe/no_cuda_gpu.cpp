// SPDX-License-Identifier: Apache-2.0
// Replaces cuda_gpu.cpp in builds without CUDA: there are no GPUs, so only `owner_of` is called.
#include "beeline/core/error.hpp"
#include "hpe/gpu.hpp"

namespace beeline::hpe::gpu {

namespace {
[[noreturn]] void unavailable() { throw Error(Status::unavailable, "this build has no CUDA"); }
}  // namespace

std::optional<Owner> owner_of(const void*) { return std::nullopt; }
void on(int, const std::function<void()>&) { unavailable(); }
bool is_current(int) { unavailable(); }
void enqueue_copy(int, void*, void*, const void*, std::size_t) { unavailable(); }
void enqueue_wait(int, void*, std::uint64_t*, std::uint64_t) { unavailable(); }
std::byte* allocate(int, std::size_t) { unavailable(); }
void free(int, std::byte*) noexcept {}
std::string fault(int) { unavailable(); }

}  // namespace beeline::hpe::gpu
