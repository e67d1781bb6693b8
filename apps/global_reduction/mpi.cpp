// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method mpi, the baseline: a kernel for the local sum, a copy to host memory, MPI_Allreduce, and a copy back. The CPU
/// drives each step. Source: seed 000 section 6.9.2.

#include "common/mpi_session.hpp"
#include "method.hpp"

namespace global_reduction {

namespace {

using apps::require_mpi;

class Mpi final : public Method {
 public:
  explicit Mpi(Values& values) : Method(values), on_host_(world(), 2, beeline::Heap::pinned) {
    apps::begin_mpi(world());
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

void finish_mpi() { apps::end_mpi(); }

}  // namespace global_reduction
