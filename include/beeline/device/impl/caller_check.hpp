// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What callers of device operations must keep to, checked in programs compiled with BEELINE_CHECKED only.

#include <cstdio>
#include <cstdlib>

#include "beeline/core/macros.hpp"

#if defined(BEELINE_CHECKED)
#define BEELINE_CHECK_CALLER(condition) \
  ((condition) ? static_cast<void>(0) : ::beeline::detail::caller_broke(#condition, __func__))
#else
#define BEELINE_CHECK_CALLER(condition) static_cast<void>(0)
#endif

namespace beeline::detail {

/// Says what was broken and where, and ends the kernel (on a GPU) or the process.
BEELINE_COLD BEELINE_HOST_DEVICE inline void caller_broke(const char* condition, const char* function) {
#if BEELINE_ON_GPU
  printf("beeline: %s is called without %s\n", function, condition);
  __trap();
#else
  std::fprintf(stderr, "beeline: %s is called without %s\n", function, condition);
  std::abort();
#endif
}

}  // namespace beeline::detail
