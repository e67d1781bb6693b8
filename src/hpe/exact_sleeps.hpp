// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Short sleeps.

#include <sys/prctl.h>

namespace beeline::hpe::detail {

/// While an object of this class exists, sleeps of its thread end as exactly as the kernel can; otherwise they last 50
/// us longer. Signal handlers may use it.
class ExactSleeps {
 public:
  ExactSleeps() noexcept : slack_ns_(::prctl(PR_GET_TIMERSLACK)) { ::prctl(PR_SET_TIMERSLACK, 1); }
  ~ExactSleeps() {
    if (slack_ns_ > 0) ::prctl(PR_SET_TIMERSLACK, slack_ns_);
  }
  ExactSleeps(const ExactSleeps&) = delete;
  ExactSleeps& operator=(const ExactSleeps&) = delete;

 private:
  const int slack_ns_;
};

}  // namespace beeline::hpe::detail
