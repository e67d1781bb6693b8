// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Devices that ranks own: GPUs found through the driver, and the host device (CPU threads).

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "beeline/core/layout.hpp"

namespace beeline {

/// The device on which a rank runs.
struct Device {
  DeviceKind kind = DeviceKind::host;
  int index = -1;           ///< CUDA ordinal in the rank's process, -1 for the host device
  std::string uuid;         ///< `GPU-...`, empty for the host device
  std::string name;         ///< marketing name, or the CPU's model
  int multiprocessors = 0;  ///< GPU only
  std::size_t memory_bytes = 0;
  /// GPU only: whether its atomics on host memory are atomic towards CPUs and other GPUs (hostNativeAtomicSupported).
  bool host_atomics = false;
  [[nodiscard]] bool is_gpu() const { return kind == DeviceKind::gpu; }
};

/// GPUs visible to this process (`CUDA_VISIBLE_DEVICES` respected), empty without CUDA in the build, without a driver
/// or without a device. `why_none`, if given, gets the reason for an empty result.
[[nodiscard]] std::vector<Device> visible_gpus(std::string* why_none = nullptr);

/// The host device of this machine.
[[nodiscard]] Device host_device();

/// The devices from which one rank can choose; all ranks exchange this before they choose.
struct DeviceInventory {
  std::uint64_t process = 0;      ///< equal for ranks that are threads of one process
  std::vector<std::string> gpus;  ///< UUIDs in CUDA order
  std::string choice = "auto";    ///< the rank's entry of `devices_of_ranks`
};

/// The device requested for each of `ranks` ranks: auto, cpu, or cuda:ID (ID is an index or a UUID).
///   choice   auto or cpu, for all ranks; cuda:ID[,ID...], the IDs in turn; or a list with an entry cpu or cuda:ID for
///            each rank, as in cuda:0,cuda:1,cpu,cpu
/// Throws invalid_argument: unknown syntax, a list with more or fewer entries than ranks.
[[nodiscard]] std::vector<std::string> devices_of_ranks(const std::string& choice, int ranks);

/// The GPU of `rank`, as an index into its inventory's GPUs; -1 for the host device.
///   mps      whether processes may share a GPU (NVIDIA MPS runs)
/// Pure: every rank computes the same choices, for all ranks. Either all ranks with the choice `auto` get GPUs, or none
/// of them. Throws invalid_argument (no such device) or no_resource (a GPU shared by processes without MPS).
[[nodiscard]] int choose_gpu(int rank, const std::vector<DeviceInventory>& inventories, bool mps);

/// The GPU with which host rank `rank` copies to and from GPU memory, as an index into its inventory's GPUs: one of the
/// ranks' GPUs, in turn; -1 if its process sees none of them. Pure, as `choose_gpu`.
///   owned    each rank's GPU by UUID, empty for host ranks
[[nodiscard]] int choose_reaching_gpu(int rank, const std::vector<DeviceInventory>& inventories,
                                      const std::vector<std::string>& owned);

/// Whether kernels of `rank` may do read-modify-writes of host memory. They may if its GPU's atomics on host memory are
/// atomic towards all other devices, or if every rank of the world is on that GPU, since CPUs then use no atomics
/// (device/access.hpp). Pure.
///   devices  [ranks] devices of the world's ranks
[[nodiscard]] bool kernels_have_host_atomics(const std::vector<Device>& devices, int rank);

/// Whether NVIDIA's Multi-Process Service runs for this user.
[[nodiscard]] bool mps_runs();

/// Whether GPU `from` of this process reaches the memory of GPU `to` directly.
[[nodiscard]] bool peer_access(int from, int to);

/// Makes GPU `index` the calling thread's current GPU.
void use_gpu(int index);

/// Versions as `major.minor`, empty if there is no driver or no CUDA in the build.
struct CudaVersions {
  std::string driver, runtime;
};
[[nodiscard]] CudaVersions cuda_versions();

/// Whether this build compiled its kernels for GPUs.
[[nodiscard]] bool built_with_cuda();

/// Compute capability of GPU `index` of this process, as 90 for 9.0.
[[nodiscard]] int compute_capability(int index);

/// A `__global__` function, by its address in host code, and the dynamic shared memory of its blocks.
struct KernelCode {
  const void* address = nullptr;
  std::size_t shared_bytes = 0;
};

/// Loads the kernel's code on GPU `device` now, since lazy loading would wait for a spinning kernel.
void load_kernel(const KernelCode& kernel, int device);
/// Blocks of `threads` threads of `kernel` that GPU `device` holds at once; 0 if a single block does not fit. The
/// driver is asked once for each combination.
[[nodiscard]] unsigned gpu_resident_blocks(const KernelCode& kernel, unsigned threads, int device);
/// The architecture for which the code of `kernel` that GPU `device` runs was compiled, as 90 for 9.0. It is less than
/// the GPU's compute capability if the build has no newer code. The driver is asked once for each combination.
[[nodiscard]] int kernel_architecture(const KernelCode& kernel, int device);
/// Why the calling thread's last launch failed; empty if it succeeded.
[[nodiscard]] std::string launch_error();

}  // namespace beeline
