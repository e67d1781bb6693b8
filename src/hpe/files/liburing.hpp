// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Functions of liburing, which is opened at run time. Headers of liburing 2.3 or later are needed to compile this.

#include <liburing.h>

namespace beeline::hpe::detail {

#define BEELINE_LIBURING_FUNCTIONS(each)                                                                           \
  each(io_uring_queue_init) each(io_uring_queue_exit) each(io_uring_submit) each(io_uring_submit_and_wait_timeout) \
      each(io_uring_peek_batch_cqe)

struct UringFunctions {
#define BEELINE_LIBURING_DECLARE(function) decltype(&::function) function;
  BEELINE_LIBURING_FUNCTIONS(BEELINE_LIBURING_DECLARE)
#undef BEELINE_LIBURING_DECLARE
};

/// Throws unavailable if the library is not there.
[[nodiscard]] const UringFunctions& uring();

}  // namespace beeline::hpe::detail
