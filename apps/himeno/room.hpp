// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Whether a problem fits the machine, asked before anything is allocated.

#include <cstddef>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/runtime/device.hpp"
#include "problem.hpp"

namespace himeno {

/// What there is for ranks to run on.
struct Machine {
  std::vector<beeline::Device> gpus;  ///< that ranks may take; empty: they run on CPUs
  std::size_t memory_bytes = 0;       ///< of the host
};

/// This machine, without its GPUs where `device` is "cpu".
[[nodiscard]] Machine machine_for(const std::string& device);

/// Gives the world of `config` the heaps that the problem needs.
///   verify  rank 0 holds the serial reference too
/// Throws invalid_argument when there are more ranks than planes, or slots are too small for the heaps; no_resource
/// when the memory could not hold them, whatever else runs on the machine.
void fit(beeline::Config& config, const Size& size, bool verify, const Machine& machine);

}  // namespace himeno
