// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Whether a problem fits the machine, asked before anything is allocated.

#include "common/memory_budget.hpp"
#include "problem.hpp"

namespace himeno {

using apps::Machine;
using apps::machine_for;

/// Gives the world of `config` the heaps that the problem needs.
///   verify  rank 0 holds the serial reference too
/// Throws invalid_argument when there are more ranks than planes, or slots are too small for the heaps; no_resource
/// when the memory could not hold them, whatever else runs on the machine.
void fit(beeline::Config& config, const Size& size, bool verify, const Machine& machine);

}  // namespace himeno
