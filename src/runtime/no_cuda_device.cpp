// SPDX-License-Identifier: Apache-2.0
// Replaces cuda_device.cpp in builds without CUDA.
#include "beeline/core/error.hpp"
#include "beeline/runtime/device.hpp"
#include "beeline/runtime/gpu_place.hpp"
#include "runtime/gpu_fault.hpp"
#include "runtime/grid_start.hpp"

namespace beeline {

namespace {
[[noreturn]] void unavailable() { throw Error(Status::unavailable, "this build has no CUDA"); }
}  // namespace

std::vector<Device> visible_gpus(std::string* why_none) {
  if (why_none != nullptr) *why_none = "this build has no CUDA: with CUDA's nvcc on PATH, build again";
  return {};
}
bool peer_access(int, int) { unavailable(); }
void use_gpu(int) { unavailable(); }
std::string pci_address(int) { return {}; }
CudaVersions cuda_versions() { return {}; }
bool built_with_cuda() { return false; }
int compute_capability(int) { unavailable(); }
void load_kernel(const KernelCode&, int) { unavailable(); }
unsigned gpu_resident_blocks(const KernelCode&, unsigned, int) { unavailable(); }
std::string detail::gpu_fault(int) { unavailable(); }
int kernel_architecture(const KernelCode&, int) { unavailable(); }
void start_grid(const KernelCode&, int, const GridShape&, void**) { unavailable(); }
std::string launch_error() { unavailable(); }

}  // namespace beeline
