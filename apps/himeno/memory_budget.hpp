// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Whether a problem fits the machine, asked before anything is allocated.

#include "common/memory_budget.hpp"
#include "problem.hpp"

namespace himeno {

using apps::Machine;
using apps::machine_for;

/// Sets the heap sizes of `config` for the problem.
///   verify  rank 0 also holds the serial reference
/// Throws invalid_argument when there are more ranks than planes, or slots are too small for the heaps; no_resource
/// when the machine's memory is too small even if nothing else runs.
void fit(beeline::Config& config, const Size& size, bool verify, const Machine& machine);

}  // namespace himeno
