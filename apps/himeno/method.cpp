// SPDX-License-Identifier: Apache-2.0
#include "method.hpp"

namespace himeno {

const std::vector<MethodInfo>& methods() {
  static const std::vector<MethodInfo> all{host_staged(),   host_copy_engine(),     stream_kernels(), in_kernel(),
                                           block_signals(), global_address_space(), persistent()};
  return all;
}

}  // namespace himeno
