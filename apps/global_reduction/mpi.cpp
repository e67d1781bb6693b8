// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method mpi, the baseline: a kernel for the local sum, a copy to host memory, MPI_Allreduce, and a copy back. The CPU
/// drives each step. Source: seed 000 section 6.9.2.

#include <mpi.h>

#include "beeline/core/error.hpp"
#include "method.hpp"

namespace global_reduction {

namespace {

void require_mpi(int code, const char* what) {
  beeline::require(code == MPI_SUCCESS, beeline::Status::internal, std::string(what) + " failed");
}

bool has_begun() {
  int begun = 0;
  require_mpi(MPI_Initialized(&begun), "MPI_Initialized");
  return begun != 0;
}

class Mpi final : public Method {
 public:
  explicit Mpi(Values& values) : Method(values), on_host_(world(), 2, beeline::Heap::pinned) {
    if (!has_begun()) require_mpi(MPI_Init(nullptr, nullptr), "MPI_Init");
    int rank = -1, size = 0;
    require_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
    require_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
    beeline::require(rank == world().rank() && size == world().size(), beeline::Status::internal,
                     "MPI says rank " + std::to_string(rank) + " of " + std::to_string(size) + ", the world rank " +
                         std::to_string(world().rank()) + " of " + std::to_string(world().size()));
  }

  void run(int reductions) override {
    double* const mine = on_host_.data();
    double* const all = on_host_.data() + 1;
    for (int reduction = 0; reduction < reductions; ++reduction) {
      values().enqueue_local_sum();
      world().copy(mine, values().local(), sizeof(double), world().stream());
      world().synchronize();
      require_mpi(MPI_Allreduce(mine, all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce");
      world().copy(values().global(), all, sizeof(double), world().stream());
    }
    world().synchronize();
  }

 private:
  beeline::SymmetricArray<double> on_host_;  ///< this rank's sum, and the sum of all ranks
};

}  // namespace

std::unique_ptr<Method> make_mpi(Values& values) { return std::make_unique<Mpi>(values); }

std::string why_no_mpi(const beeline::Config& config) {
  return config.launcher.name == "mpirun" ? "" : "its ranks are started by mpirun, these were not";
}

void finish_mpi() {
  if (has_begun()) static_cast<void>(MPI_Finalize());
}

}  // namespace global_reduction
