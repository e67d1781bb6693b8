// SPDX-License-Identifier: Apache-2.0
// The unit of caller_check_test that is compiled without BEELINE_CHECKED.
#undef BEELINE_CHECKED
#include "tests/unit/caller_check_mode.hpp"

namespace beeline_test {

UnitMode unchecked_unit() { return mode_of_this_unit(); }

}  // namespace beeline_test
