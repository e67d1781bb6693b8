// SPDX-License-Identifier: Apache-2.0
#include "hpe/biased_lock.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace beeline::hpe::detail {

bool BiasedLock::has_barrier() noexcept {
  static const bool is_offered = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return is_offered;
}

bool BiasedLock::pass_barrier() noexcept {
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

}  // namespace beeline::hpe::detail
