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

}  // namespace beeline
