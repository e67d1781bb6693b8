// SPDX-License-Identifier: Apache-2.0
#include "method.hpp"

namespace himeno {

// methods.inc, which CMake writes, has METHOD(name) for each.
#define METHOD(name) MethodInfo name();
#include "methods.inc"
#undef METHOD

const std::vector<MethodInfo>& methods() {
  static const std::vector<MethodInfo> all{
#define METHOD(name) name(),
#include "methods.inc"
#undef METHOD
  };
  return all;
}

}  // namespace himeno
