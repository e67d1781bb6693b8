// SPDX-License-Identifier: Apache-2.0
/// @file
/// Replaces method mpi in builds without MPI.

#include "beeline/core/error.hpp"
#include "method.hpp"

namespace global_reduction {

std::string why_no_mpi(const beeline::Config&) { return "built without MPI (BEELINE_WITH_MPI)"; }

std::unique_ptr<Method> make_mpi(Values& values) {
  throw beeline::Error(beeline::Status::unavailable, why_no_mpi(values.world().config()));
}

void finish_mpi() {}

}  // namespace global_reduction
