// SPDX-License-Identifier: Apache-2.0
// Messages in every kind of world. This process must not use CUDA: it forks.
#include "tests/conformance/suite.hpp"

int main(int argc, char** argv) {
  using namespace beeline_test;
  return run_suite(argc, argv, channel_shapes({64}), [](const WorldShape& shape) {
    if (shape.crowd) return cases_of({CaseGroup::crowded_messages});
    return cases_of({CaseGroup::messages, CaseGroup::message_sessions});
  });
}
