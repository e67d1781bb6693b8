// SPDX-License-Identifier: Apache-2.0
// Compiles where device operations check what callers pass, or where they do not, as CHECKED says.
#include "beeline/core/macros.hpp"

static_assert(BEELINE_CHECKS_CALLS == CHECKED);
