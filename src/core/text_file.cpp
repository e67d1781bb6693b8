// SPDX-License-Identifier: Apache-2.0
#include "core/text_file.hpp"

#include <fcntl.h>

#include <array>

namespace beeline {

std::unique_ptr<std::FILE, int (*)(std::FILE*)> open_text(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  return {descriptor < 0 ? nullptr : ::fdopen(descriptor, "r"), std::fclose};
}

std::string read_text(const std::string& path) {
  const auto file = open_text(path);
  std::string text;
  std::array<char, 4096> some;
  while (file != nullptr) {
    const std::size_t count = std::fread(some.data(), 1, some.size(), file.get());
    text.append(some.data(), count);
    if (count < some.size()) break;
  }
  return text;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::vector<std::filesystem::path> control_groups(std::string_view controller, const std::string& root) {
  std::vector<std::filesystem::path> folders;
  const std::string list = read_text(root + "/proc/self/cgroup");
  for (const std::string_view line : lines_of(list)) {  // as `4:memory:/path` (version 1) or `0::/path` (version 2)
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && controllers != controller) continue;
    const std::filesystem::path mount = std::filesystem::path(root + "/sys/fs/cgroup") / controllers;
    // Parent groups have limits, too. In a container the path may be the host's, and the root may be the group itself.
    for (std::filesystem::path path = line.substr(second + 1);; path = path.parent_path()) {
      folders.push_back(mount / path.relative_path());
      if (!path.has_relative_path()) break;
    }
  }
  return folders;
}

}  // namespace beeline
