// SPDX-License-Identifier: Apache-2.0
#include "torch_variables.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "beeline/core/error.hpp"
#include "remote.hpp"

namespace beeline::launcher {

namespace {

/// A socket bound to a free port. It does not listen, so that another socket with SO_REUSEADDR, as torch's, may.
FileDescriptor reserve_port() {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  sockaddr_in any{};
  any.sin_family = AF_INET;
  const bool is_bound = socket && ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                        ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0;
  require(is_bound, Status::no_resource,
          fmt::format("no port for MASTER_PORT: {}", std::generic_category().message(errno)));
  return socket;
}

std::string port_of(const FileDescriptor& socket) {
  sockaddr_in own{};
  socklen_t bytes = sizeof own;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &bytes);
  return fmt::format("{}", ntohs(own.sin_port));
}

/// The value that the user has set; empty if the variable is unset or an outer job has set it.
std::string of_user(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr || std::getenv("RANK") != nullptr ? "" : value;
}

}  // namespace

TorchVariables::TorchVariables(const Options& options)
    : options_(options), address_(of_user("MASTER_ADDR")), port_(of_user("MASTER_PORT")) {
  if (address_.empty())
    address_ = options.hosts.empty() ? "127.0.0.1" : options.hosts.front().substr(options.hosts.front().find('@') + 1);
  if (!port_.empty()) return;
  reservation_ = reserve_port();
  port_ = port_of(reservation_);
}

void TorchVariables::add_to(Environment& changes, int rank) const {
  int local_rank = 0, local_size = 0;
  for (int other = 0; other < options_.ranks; ++other) {
    if (!options_.hosts.empty() && host_index(options_, other) != host_index(options_, rank)) continue;
    local_rank += other < rank ? 1 : 0;
    ++local_size;
  }
  changes["RANK"] = fmt::format("{}", rank);
  changes["WORLD_SIZE"] = fmt::format("{}", options_.ranks);
  changes["LOCAL_RANK"] = fmt::format("{}", local_rank);
  changes["LOCAL_WORLD_SIZE"] = fmt::format("{}", local_size);
  changes["MASTER_ADDR"] = address_;
  changes["MASTER_PORT"] = port_;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (text.starts_with("TORCHELASTIC_")) changes[std::string(text.substr(0, text.find('=')))] = "";
  }
}

}  // namespace beeline::launcher
