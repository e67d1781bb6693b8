// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "beeline/core/wait_policy.hpp"

namespace beeline::detail {

namespace {

thread_local WaitListener* listener = nullptr;
thread_local WaitInterrupt* interrupt = nullptr;

}  // namespace

WaitListener* listen_to_waits(WaitListener* next) noexcept { return std::exchange(listener, next); }

void tell_wait() noexcept {
  if (listener != nullptr) listener->on_wait();
}

WaitInterrupt* interrupt_waits_by(WaitInterrupt* next) noexcept { return std::exchange(interrupt, next); }

bool is_interrupted(std::uint64_t now_ns) noexcept { return interrupt != nullptr && interrupt->ends_wait(now_ns); }

}  // namespace beeline::detail
