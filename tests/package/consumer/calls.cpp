// SPDX-License-Identifier: Apache-2.0
// Compiles only if CHECKED says correctly whether device operations check what callers pass.
#include "beeline/core/macros.hpp"

static_assert(BEELINE_CHECKS_CALLS == CHECKED);
