// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

namespace beeline::launch {

namespace {

constexpr std::size_t remembered_lines = 10;
constexpr std::size_t remembered_characters = 500;
constexpr std::size_t longest_line = std::size_t{16} << 20;  // more is printed in pieces

/// 0, or why not: an errno.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {  // whoever started the launcher made it non-blocking
      pollfd set{descriptor, POLLOUT, 0};
      ::poll(&set, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

/// Objects and arrays only: a bare number or word is more likely text.
bool is_json(std::string_view line) {
  const auto first = line.find_first_not_of(" \t");
  return first != std::string_view::npos && (line[first] == '{' || line[first] == '[') && nlohmann::json::accept(line);
}

}  // namespace

void History::add(std::string_view line) {
  lines_.emplace_back(line.substr(0, remembered_characters));
  if (line.size() > remembered_characters) lines_.back() += "...";
  if (lines_.size() > remembered_lines) lines_.pop_front();
}

int LineSplitter::feed(std::string_view bytes) {
  int fault = 0;
  for (auto end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    partial_ += bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    fault = first_of(fault, print(partial_));
    partial_.clear();
  }
  partial_ += bytes;
  return partial_.size() < longest_line ? fault : first_of(fault, finish());
}

int LineSplitter::finish() {
  const std::string rest = std::exchange(partial_, {});
  return rest.empty() ? 0 : print(rest);
}

int LineSplitter::print(std::string_view line) {
  target_.history->add(line);
  if (target_.passes_json && is_json(line)) return write_all(STDOUT_FILENO, std::string(line) + "\n");
  return write_all(target_.descriptor, target_.prefix + std::string(line) + "\n");  // one write: lines do not mix
}

}  // namespace beeline::launch
