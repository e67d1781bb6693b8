// SPDX-License-Identifier: Apache-2.0
#include "runtime/process_id.hpp"

#include <sys/random.h>
#include <unistd.h>

namespace beeline::detail {

std::uint64_t process_id() {
  static const std::uint64_t origin = [] {
    std::uint64_t random = 0;
    return getrandom(&random, sizeof random, 0) == sizeof random ? random : 0;
  }();
  return origin ^ static_cast<std::uint64_t>(getpid());
}

}  // namespace beeline::detail
