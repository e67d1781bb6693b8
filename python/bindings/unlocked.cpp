// SPDX-License-Identifier: Apache-2.0
#include "unlocked.hpp"

#include "beeline/core/error.hpp"

namespace nb = nanobind;

namespace beeline::python {

BlockingCall::BlockingCall(Team* aborted) : aborted_(aborted) {
  detail::WaitInterrupt* const outer = detail::interrupt_waits_by(this);
  if (outer == nullptr) return;
  detail::interrupt_waits_by(outer);
  throw Error(Status::invalid_argument, "the handler of a signal cannot block where another call waits");
}

BlockingCall::~BlockingCall() { detail::interrupt_waits_by(nullptr); }

bool BlockingCall::ends_wait(std::uint64_t now_ns) noexcept {
  constexpr std::uint64_t period_ns = 50'000'000;
  if (raised_) return true;
  if (now_ns < next_ns_) return false;
  next_ns_ = now_ns + period_ns;
  const nb::gil_scoped_acquire locked;
  if (PyErr_CheckSignals() == 0) return false;
  raised_.emplace();
  if (aborted_ != nullptr) aborted_->give_up("a signal ended its call");
  return true;
}

}  // namespace beeline::python
