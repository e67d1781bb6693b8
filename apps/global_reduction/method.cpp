// SPDX-License-Identifier: Apache-2.0
#include "method.hpp"

namespace global_reduction {

const std::vector<MethodInfo>& methods() {
  static const std::vector<MethodInfo> all{
      {{"mpi", "the baseline: kernel, copy to host memory, MPI_Allreduce, copy back", {}, why_no_mpi}, make_mpi},
      on_stream(),
      in_kernel(),
      persistent()};
  return all;
}

}  // namespace global_reduction
