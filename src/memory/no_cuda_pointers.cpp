// SPDX-License-Identifier: Apache-2.0
// Replaces cuda_pointers.cpp in builds without CUDA: all memory is host memory.
#include "beeline/core/error.hpp"
#include "memory/gpu_pointers.hpp"

namespace beeline::gpu_memory {

namespace {
[[noreturn]] void no_pointers_of_gpus() { throw Error(Status::unavailable, "this build has no CUDA"); }
}  // namespace

PointerInfo describe(const void*) { return {}; }
std::size_t bytes_behind(const void*, int) { no_pointers_of_gpus(); }
std::uint64_t allocation_id(const void*, int) { return 0; }
Allocation allocation_at(const void*, int) { return {}; }
IpcHandle export_ipc(const void*, int) { no_pointers_of_gpus(); }
std::byte* open_ipc(const IpcHandle&, int) { no_pointers_of_gpus(); }
void close_ipc(std::byte*, int) {}
bool enable_peer(int, int) { return false; }

}  // namespace beeline::gpu_memory
