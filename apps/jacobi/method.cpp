// SPDX-License-Identifier: Apache-2.0
#include "method.hpp"

namespace jacobi {

const std::vector<MethodInfo>& methods() {
  static const std::vector<MethodInfo> all{host(),      stream(),           proxy(), proxy_device(),
                                           triggered(), triggered_device(), task(),  device()};
  return all;
}

}  // namespace jacobi
