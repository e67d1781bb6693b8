// SPDX-License-Identifier: Apache-2.0
// Collectives in every kind of world. This process must not use CUDA: it forks.
#include "tests/conformance/suite.hpp"

namespace beeline_test {

namespace {

std::vector<Case> cases_of(const WorldShape& shape) {
  return shape.crowd ? crowded_collective_cases() : collective_cases();
}

[[maybe_unused]] const bool registered = register_shapes(channel_shapes({9, 31, 64}), cases_of);

}  // namespace

}  // namespace beeline_test
