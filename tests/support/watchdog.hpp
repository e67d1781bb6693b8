// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Ends a test that hangs.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace beeline_test {

/// Ends the whole process with `message()` unless it is destroyed within `limit`.
class Watchdog {
 public:
  Watchdog(std::chrono::seconds limit, std::function<std::string()> message);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace beeline_test
