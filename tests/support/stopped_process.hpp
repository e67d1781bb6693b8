// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A test that needs another process to be stopped waits for that: on a busy machine the process may take long to stop
/// itself.

#include <sys/types.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "tests/support/check.hpp"

namespace beeline_test {

/// Waits until a process is stopped by SIGSTOP, at most 20 s.
inline void await_stop(pid_t process) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    std::string line;
    std::getline(std::ifstream(join("/proc/", process, "/stat")), line);
    const std::size_t name_end = line.rfind(") ");  // the state follows the name in parentheses
    if (name_end != line.npos && line.substr(name_end + 2, 1) == "T") return;
    if (std::chrono::steady_clock::now() > end)
      throw CheckFailure(join("process ", process, " is not stopped after 20 s: ", line));
  }
}

}  // namespace beeline_test
