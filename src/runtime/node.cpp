// SPDX-License-Identifier: Apache-2.0
#include "runtime/node.hpp"

#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <array>

#include "core/text_file.hpp"

namespace beeline::detail {

namespace {

std::string network_namespace() {
  std::array<char, 64> name{};
  const ssize_t length = ::readlink("/proc/self/ns/net", name.data(), name.size());
  return length > 0 ? std::string(name.data(), static_cast<std::size_t>(length)) : "net:?";
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

std::string node_of(const Config& config) {
  const std::string text = read_text("/proc/sys/kernel/random/boot_id");
  const std::string boot = text.empty() ? host_name() : std::string(lines_of(text).front());
  const int part = config.rank * config.split_nodes / config.size;
  return fmt::format("{} {} {}", boot, network_namespace(), part);
}

std::string host_of(const std::string& node) { return node.substr(0, node.rfind(' ')); }

std::string machine_of(const std::string& node) { return node.substr(0, node.find(' ')); }

}  // namespace beeline::detail
