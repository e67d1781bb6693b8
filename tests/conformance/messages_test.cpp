// SPDX-License-Identifier: Apache-2.0
// Messages in every kind of world. This process must not use CUDA: it forks.
#include "tests/conformance/message_calls.hpp"
#include "tests/conformance/suite.hpp"

namespace beeline_test {

namespace {

std::vector<Case> cases_of(const WorldShape& shape) { return shape.crowd ? crowded_message_cases() : message_cases(); }

[[maybe_unused]] const bool registered = register_shapes(channel_shapes({64}), cases_of);

}  // namespace

}  // namespace beeline_test
