// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Starting threads, with an error that says more than std::thread's "Resource temporarily unavailable".

#include <csignal>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "beeline/core/error.hpp"

namespace beeline::detail {

/// While an object exists, its thread gets no signals, and threads started by that thread never get any.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

/// The limits on this process's threads: of its user, its control groups and its address space.
///   root  prefix of /proc and /sys, for tests
[[nodiscard]] std::string thread_limits(const std::string& root = "");

/// Throws no_resource, since a thread could not be started.
[[noreturn]] void refuse_thread(const std::string& purpose, const std::system_error& error);

/// Starts a thread that runs `body`. Throws no_resource with an error that names the thread's purpose and the limits.
template <class Body>
std::thread start_thread_for(const std::string& purpose, Body body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    refuse_thread(purpose, error);
  }
}

}  // namespace beeline::detail
