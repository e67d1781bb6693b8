// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Whether a test may fork.

#include "beeline/hpe/device.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test {

inline bool may_fork() { return !under_thread_sanitizer && beeline::hpe::Device::gpus().empty(); }
inline constexpr const char* no_fork = "a process that uses CUDA or ThreadSanitizer does not fork";

}  // namespace beeline_test
