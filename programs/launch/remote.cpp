// SPDX-License-Identifier: Apache-2.0
#include "remote.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string_view>

#include "beeline/core/error.hpp"

namespace beeline::launch {

namespace {

/// A word of a shell's.
std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char each : text) word += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return word + "'";
}

/// What the rank would inherit here, and what the launcher sets.
Environment variables_of(const Environment& changes) {
  Environment all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (text.starts_with("BEELINE_") || text.starts_with("UCX_"))
      all.emplace(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
  }
  for (const auto& [variable, value] : changes) all[variable] = value;
  all.erase("BEELINE_TOKEN");
  return all;
}

/// This machine's address on the way to `host`; no packet is sent.
std::string address_towards(const std::string& host) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_INET, hints.ai_socktype = SOCK_DGRAM;
  const std::string name = host.substr(host.find('@') == std::string::npos ? 0 : host.find('@') + 1);
  const int error = ::getaddrinfo(name.c_str(), "9", &hints, &found);
  require(error == 0, Status::invalid_argument,
          fmt::format("--hosts: {}: {}; --bind says at which address of this machine ranks meet", host,
                      ::gai_strerror(error)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in own{};
  socklen_t bytes = sizeof own;
  if (::connect(socket.get(), addresses->ai_addr, addresses->ai_addrlen) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &bytes) != 0)
    throw Error(Status::unreachable, fmt::format("--hosts: no way leads to {}", host));
  std::array<char, INET_ADDRSTRLEN> text{};
  return ::inet_ntop(AF_INET, &own.sin_addr, text.data(), text.size());
}

}  // namespace

std::size_t host_index(const Options& options, int rank) {
  return static_cast<std::size_t>(rank) * options.hosts.size() / static_cast<std::size_t>(options.ranks);
}

std::vector<std::string> remote_command(const Options& options, const std::string& path, const std::string& host,
                                        const Environment& changes) {
  std::string script = "read -r BEELINE_TOKEN; export BEELINE_TOKEN";
  for (const auto& [variable, value] : variables_of(changes))
    script += fmt::format(" {}={}", variable, shell_word(value));
  script += fmt::format("; cd {} || exit 2; exec 3<&0; ", shell_word(std::filesystem::current_path().string()));
  script += shell_word(std::filesystem::absolute(path).string());
  for (std::size_t i = 1; i < options.command.size(); ++i) script += " " + shell_word(options.command[i]);
  script +=
      " 3<&- </dev/null & rank=$!; "
      "{ while read -r signal <&3; do kill -s $signal $rank; done; kill -TERM $rank; sleep 2; kill -KILL $rank; } "
      ">/dev/null 2>&1 & guard=$!; "
      "exec 3<&-; wait $rank; status=$?; kill $guard; exit $status";
  std::vector<std::string> command;
  std::istringstream words(options.ssh);
  for (std::string word; words >> word;) command.push_back(word);
  command.push_back(host);
  command.push_back("sh -c " + shell_word(script));
  return command;
}

std::string address_for(const std::vector<std::string>& hosts) {
  std::string address;
  for (const std::string& host : hosts) {
    address = address_towards(host);
    if (!address.starts_with("127.")) return address;
  }
  return address;  // all of them are this machine
}

}  // namespace beeline::launch
