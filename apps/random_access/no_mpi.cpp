// SPDX-License-Identifier: Apache-2.0
/// @file
/// Replaces method mpi in builds without MPI.

#include "beeline/core/error.hpp"
#include "method.hpp"

namespace random_access {

std::string why_no_mpi(const beeline::Config&) { return "built without MPI (BEELINE_WITH_MPI)"; }

std::unique_ptr<Method> make_mpi(Table& table) {
  throw beeline::Error(beeline::Status::unavailable, why_no_mpi(table.world().config()));
}

void finish_mpi() {}

}  // namespace random_access
