// SPDX-License-Identifier: Apache-2.0
#include "method.hpp"

#include "common/program.hpp"

namespace himeno {

const std::vector<MethodInfo>& methods() {
  static const std::vector<MethodInfo> all{
      {"host_staged", "the host computes, then exchanges planes through pinned host memory", make_host_staged},
      {"host_copy_engine", "the host starts copies of one half's planes while the other half is computed",
       make_host_copy_engine},
      {"stream_kernels", "communication kernels between the compute kernels of a stream", make_stream_kernels},
      {"in_kernel", "the compute kernel's last block on a boundary sends it; blocks wait at their start",
       make_in_kernel},
      {"block_signals", "each block puts its own part of a boundary, with a signal of its own", make_block_signals},
      {"global_address_space",
       "boundary cells are stored into the neighbour while they are computed; a barrier an iteration",
       make_global_address_space},
      {"persistent", "one kernel for all iterations, with grid barriers and packets", make_persistent},
  };
  return all;
}

const MethodInfo& find_method(const std::vector<MethodInfo>& all, const std::string& name) {
  return apps::find_method(all, name);
}

}  // namespace himeno
