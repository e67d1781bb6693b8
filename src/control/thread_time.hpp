// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The CPU time of a thread.

#include <pthread.h>
#include <time.h>

#include <thread>

namespace beeline {

/// CPU seconds used by a thread that has not been joined; 0 if the system does not report them.
inline double cpu_seconds_of(const std::thread& thread) {
  clockid_t clock{};
  timespec used{};
  if (::pthread_getcpuclockid(const_cast<std::thread&>(thread).native_handle(), &clock) != 0 ||
      ::clock_gettime(clock, &used) != 0)
    return 0;
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

}  // namespace beeline
