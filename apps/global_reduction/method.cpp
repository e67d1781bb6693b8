// SPDX-License-Identifier: Apache-2.0
#include "method.hpp"

namespace global_reduction {

namespace {

std::string runs_anywhere(const beeline::Config&) { return ""; }

}  // namespace

const std::vector<MethodInfo>& methods() {
  static const std::vector<MethodInfo> all{
      {"mpi", "the baseline: kernel, copy to host memory, MPI_Allreduce, copy back", make_mpi, why_no_mpi},
      {"on_stream", "kernel, then an all-reduce on the stream", make_on_stream, runs_anywhere},
      {"in_kernel", "one kernel: its last block adds up the blocks, and all-reduces", make_in_kernel, runs_anywhere},
      {"persistent", "one kernel for all reductions, with grid barriers", make_persistent, runs_anywhere},
  };
  return all;
}

}  // namespace global_reduction
