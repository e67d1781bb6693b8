// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "beeline/core/wait_policy.hpp"

namespace beeline::detail {

namespace {

thread_local WaitListener* listener = nullptr;

}  // namespace

WaitListener* listen_to_waits(WaitListener* next) noexcept { return std::exchange(listener, next); }

void tell_wait() noexcept {
  if (listener != nullptr) listener->on_wait();
}

}  // namespace beeline::detail
