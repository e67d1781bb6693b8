// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Grids on CPU threads.

#include "beeline/host/impl/launch.hpp"

namespace beeline {
class HostWorkers;
}

namespace beeline::detail {

/// The threads and state for the blocks of a grid.
struct HostGrid {
  HostWorkers& workers;
  unsigned cores, team_size;  ///< cores that the grid may use, threads of a block
  GridState* state;
  Context context;
};

/// Runs all threads of blocks [first, last) at once. Rethrows the first exception.
void run_blocks(const HostGrid& grid, const HostBlock& block, unsigned first, unsigned last);

}  // namespace beeline::detail
