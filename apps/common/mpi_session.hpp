// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// MPI beside a world, for the methods that are baselines. Only sources of builds with MPI include this.

#include <mpi.h>

#include <string>

#include "beeline/core/error.hpp"
#include "beeline/host/world.hpp"

namespace apps {

/// Throws internal, with the function's name, unless it succeeded.
inline void require_mpi(int code, const char* function) {
  beeline::require(code == MPI_SUCCESS, beeline::Status::internal, std::string(function) + " failed");
}

/// Whether MPI_Init was called.
inline bool mpi_has_begun() {
  int begun = 0;
  require_mpi(MPI_Initialized(&begun), "MPI_Initialized");
  return begun != 0;
}

/// Collective. Begins MPI if no call has begun it. Throws internal if MPI numbers the ranks otherwise than the world.
inline void begin_mpi(const beeline::World& world) {
  if (!mpi_has_begun()) require_mpi(MPI_Init(nullptr, nullptr), "MPI_Init");
  int rank = -1, size = 0;
  require_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  require_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  beeline::require(rank == world.rank() && size == world.size(), beeline::Status::internal,
                   "MPI says rank " + std::to_string(rank) + " of " + std::to_string(size) + ", the world rank " +
                       std::to_string(world.rank()) + " of " + std::to_string(world.size()));
}

/// Collective. Ends MPI if it was begun.
inline void end_mpi() {
  if (mpi_has_begun()) static_cast<void>(MPI_Finalize());
}

}  // namespace apps
