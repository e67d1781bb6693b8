// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A context without a world, for tests of streams.

#include <gtest/gtest.h>

#include "beeline/core/layout.hpp"
#include "beeline/device/context.hpp"

namespace beeline {

/// A context of one rank: a deadline, abort words, and memory for records of failed waits.
class LoneContext : public ::testing::Test {
 protected:
  LoneContext() {
    context_.abort_words = context_.host_abort_words = abort_words_;
    context_.waits = records_;
    context_.wait_claims = &claims_;
    context_.deadline_ns = 10'000'000'000;
    context_.slot_shift = min_slot_shift;
    context_.polling = 16;
    context_.size = 1;
  }

  std::uint64_t abort_words_[max_teams] = {};
  WaitRecord records_[max_wait_records] = {};
  std::uint32_t claims_ = 0;
  Context context_{};
};

}  // namespace beeline
