// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A GPU's position in its machine: the cores near the GPU, and whether CPUs can store into its memory.

#include <string>
#include <string_view>
#include <vector>

namespace beeline {

/// Cores of this process, ascending.
struct NearCores {
  std::vector<int> cores;  ///< cores near the GPU; if empty, `reason` says why
  std::string reason;
};

/// The cores near GPU `gpu` of this process (on its socket) that this process may run on, as the operating system
/// reports for the GPU's address on the PCI bus. Empty, with a reason, if the system does not report them, or if this
/// process may not run on them.
[[nodiscard]] NearCores cores_near_gpu(int gpu);

/// Why CPU threads cannot store into the memory of GPU `gpu` by themselves, so that the library stores words there by
/// operations of streams; empty if they can (docs/triggers.md). Opens NVIDIA's Vulkan driver, which takes a moment.
[[nodiscard]] std::string no_cpu_stores_reason(int gpu);

/// Address of GPU `gpu` of this process on the PCI bus, as 0000:1b:00.0; empty without CUDA in the build.
[[nodiscard]] std::string pci_address(int gpu);

/// The cores of a list in the format of the operating system, as `0-3,8`; empty if the text is not such a list.
[[nodiscard]] std::vector<int> cores_in(std::string_view list);

}  // namespace beeline
