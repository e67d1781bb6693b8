// SPDX-License-Identifier: Apache-2.0
#include "method.hpp"

namespace merge_sort {

const std::vector<MethodInfo>& methods() {
  static const std::vector<MethodInfo> all{copied_keys(), remote_reads()};
  return all;
}

}  // namespace merge_sort
