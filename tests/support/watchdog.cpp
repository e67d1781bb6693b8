// SPDX-License-Identifier: Apache-2.0
#include "tests/support/watchdog.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace beeline_test {

Watchdog::Watchdog(std::chrono::seconds limit, std::function<std::string()> message)
    : thread_([this, end = std::chrono::steady_clock::now() + limit, message = std::move(message)] {
        std::unique_lock lock(mutex_);
        if (ended_changed_.wait_until(lock, end, [this] { return ended_; })) return;
        std::fflush(nullptr);
        std::fputs(message().c_str(), stderr);
        std::_Exit(1);
      }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ended_changed_.notify_one();
  thread_.join();
}

}  // namespace beeline_test
