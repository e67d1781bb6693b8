// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Where a GPU sits in its machine: the cores that are near it, and whether CPUs can store into its memory.

#include <string>
#include <string_view>
#include <vector>

namespace beeline {

/// Cores of this process, ascending.
struct NearCores {
  std::vector<int> cores;  ///< that share the GPU's place on the bus; empty: `reason` says why
  std::string reason;
};

/// The cores near GPU `gpu` of this process (on its socket) that this process may run on, as the kernel tells of the
/// GPU's place on the PCI bus. None, with a reason, where the system does not tell, or its cores are not this
/// process's.
[[nodiscard]] NearCores cores_near_gpu(int gpu);

/// Why CPU threads cannot store into the memory of GPU `gpu`: they have no mapping of it. The library stores words
/// there by operations of streams.
[[nodiscard]] std::string no_cpu_stores_reason(int gpu);

/// Place of GPU `gpu` of this process on the PCI bus, as 0000:1b:00.0, empty without CUDA in the build.
[[nodiscard]] std::string pci_address(int gpu);

/// Cores of a list as the kernel writes them, `0-3,8`; what is no such list gives none.
[[nodiscard]] std::vector<int> cores_in(std::string_view list);

}  // namespace beeline
