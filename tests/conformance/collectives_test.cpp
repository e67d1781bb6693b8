// SPDX-License-Identifier: Apache-2.0
// Collectives in every kind of world. This process must not use CUDA: it forks.
#include "tests/conformance/suite.hpp"

int main(int argc, char** argv) {
  using namespace beeline_test;
  return run_suite(argc, argv, channel_shapes({9, 31, 64}), [](const WorldShape& shape) {
    if (shape.crowd) return cases_of({CaseGroup::crowded_collectives});
    if (shape.nodes > 1) return cases_of({CaseGroup::collectives, CaseGroup::sessions_across_nodes});
    return cases_of({CaseGroup::collectives, CaseGroup::sessions, CaseGroup::sessions_across_nodes});
  });
}
