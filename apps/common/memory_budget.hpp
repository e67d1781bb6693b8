// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Whether a problem fits the machine, asked before anything is allocated.

#include <cstddef>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/runtime/device.hpp"

namespace apps {

/// The machine's memory and GPUs.
struct Machine {
  std::vector<beeline::Device> gpus;  ///< GPUs that ranks may take; empty: ranks run on CPUs
  std::size_t memory_bytes = 0;       ///< of the host
};

/// This machine, without its GPUs where `device` is "cpu".
[[nodiscard]] Machine machine_for(const std::string& device);

/// Why ranks would run on CPUs if they saw only this process's GPUs; empty if they would not.
[[nodiscard]] std::string why_no_gpu(const beeline::Config& config);

/// The memory that a problem needs.
struct Need {
  std::string problem;                                ///< its description in messages, as "size 64x64x128 on 4 ranks"
  std::size_t symmetric_bytes = 0, pinned_bytes = 0;  ///< heaps of each rank
  std::size_t reference_bytes = 0;                    ///< host memory for the serial reference, of all ranks together
};

/// Sets the heap sizes of `config` to the bytes of `need`. Throws no_resource when the machine's memory is too small
/// even if nothing else runs.
void fit(beeline::Config& config, const Need& need, const Machine& machine);

}  // namespace apps
