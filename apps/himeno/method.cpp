// SPDX-License-Identifier: Apache-2.0
#include "method.hpp"

namespace himeno {

// CMake writes methods.inc, which contains METHOD(name) for each method.
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
