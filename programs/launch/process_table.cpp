// SPDX-License-Identifier: Apache-2.0
#include "process_table.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace beeline::launcher {

namespace {

constexpr pid_t most_processes = 1 << 22;  // PID_MAX_LIMIT of Linux

/// This process's numbers in the PID namespace of /proc and in those below, down to its own; empty without /proc.
std::vector<pid_t> numbers_in_proc() {
  std::ifstream file("/proc/self/status");
  std::vector<pid_t> numbers;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("NSpid:")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (pid_t number; words >> number;) numbers.push_back(number);
  }
  return numbers;
}

/// The number of the process that the system made last; -1 if unknown.
pid_t newest_process() {
  const pid_t process = ::fork();
  if (process == 0) ::_exit(0);
  if (process > 0) ::waitpid(process, nullptr, 0);
  return process;
}

bool has_children() {
  siginfo_t information{};
  return ::waitid(P_ALL, 0, &information, WEXITED | WNOHANG | WNOWAIT) == 0;
}

}  // namespace

bool proc_is_own() {
  static const bool is_own = numbers_in_proc().size() == 1;
  return is_own;
}

ChildState child_state(pid_t pid) {
  siginfo_t information{};
  const bool is_child = ::waitid(P_PID, static_cast<id_t>(pid), &information, WEXITED | WNOHANG | WNOWAIT) == 0;
  return {is_child, is_child && information.si_pid == pid};
}

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  if (proc_is_own()) {
    for (const ListedProcess& each : listed_processes())
      if (each.parent == ::getpid()) found.push_back(each.pid);
  } else if (has_children()) {
    // Process numbers grow up to the system's limit, then start again with small ones.
    const pid_t newest = newest_process();
    const bool is_in_order = newest > ::getpid();
    const pid_t first = is_in_order ? ::getpid() + 1 : 1, last = is_in_order ? newest : most_processes;
    for (pid_t pid = first; pid <= last; ++pid)
      if (child_state(pid).is_child) found.push_back(pid);
  }
  return found;
}

std::vector<ListedProcess> listed_processes() {
  std::vector<ListedProcess> found;
  if (!proc_is_own()) return found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    ListedProcess process{};
    if (std::from_chars(name.data(), name.data() + name.size(), process.pid).ec != std::errc()) continue;
    std::ifstream file(entry.path() / "stat");
    std::string line;
    std::getline(file, line);
    const std::size_t end_of_name = line.rfind(')');  // PID (NAME) STATE PARENT GROUP ...
    if (end_of_name != std::string::npos &&
        std::sscanf(line.c_str() + end_of_name + 1, " %c %d %d", &process.state, &process.parent, &process.group) == 3)
      found.push_back(process);
  }
  return found;
}

}  // namespace beeline::launcher
