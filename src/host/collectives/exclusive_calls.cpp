// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/exclusive_calls.hpp"

#include <fmt/format.h>

#include "beeline/core/error.hpp"
#include "host/collectives/describe_call.hpp"

namespace beeline::detail {

ExclusiveCalls::Call::Call(ExclusiveCalls& calls, const CallDescription& what, const Stream* stream) : calls_(calls) {
  const std::lock_guard lock(calls.mutex_);
  if (calls.is_made_ || calls.loan_.is_current())
    throw Error(Status::invalid_argument,
                fmt::format("{} while {} of another thread uses the same Collectives: one call after the other, or an "
                            "object for each thread",
                            describe_call(what), describe_call(calls.last_)),
                calls.rank_);
  calls.is_made_ = true;
  calls.last_ = what;
  calls.loan_ = calls.streams_.loan_of(stream);
}

ExclusiveCalls::Call::~Call() {
  const std::lock_guard lock(calls_.mutex_);
  calls_.is_made_ = false;
}

}  // namespace beeline::detail
