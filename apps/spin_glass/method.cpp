// SPDX-License-Identifier: Apache-2.0
#include "method.hpp"

namespace spin_glass {

const std::vector<MethodInfo>& methods() {
  static const std::vector<MethodInfo> all{off(), receive(), both(), device()};
  return all;
}

}  // namespace spin_glass
