// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How often tests of faults repeat steps whose outcome depends on timing.

#include <cstdlib>

namespace beeline_test {

/// BEELINE_TEST_REPETITIONS, or `few`.
[[nodiscard]] inline int repetitions(int few) {
  const char* text = std::getenv("BEELINE_TEST_REPETITIONS");
  return text == nullptr ? few : std::atoi(text);
}

}  // namespace beeline_test
