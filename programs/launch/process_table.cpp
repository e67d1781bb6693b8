// SPDX-License-Identifier: Apache-2.0
#include "process_table.hpp"

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace beeline::launch {

std::vector<ListedProcess> listed_processes() {
  std::vector<ListedProcess> found;
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

}  // namespace beeline::launch
