// SPDX-License-Identifier: Apache-2.0
#include "method.hpp"

namespace stencil {

const std::vector<MethodInfo>& methods() {
  static const std::vector<MethodInfo> all{proxy(), shared_devices(), unified(), objects()};
  return all;
}

}  // namespace stencil
