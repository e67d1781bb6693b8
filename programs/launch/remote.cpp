// SPDX-License-Identifier: Apache-2.0
#include "remote.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <string_view>

#include "beeline/core/error.hpp"
#include "beeline/runtime/rendezvous.hpp"

namespace beeline::launcher {

namespace {

/// The text quoted as one word of a shell.
std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char each : text) word += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return word + "'";
}

/// The variables that the rank would inherit on this machine, and those that the launcher sets.
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

/// The host without its user and without the brackets of an IPv6 address: CLI11 removes brackets at the ends of a list.
std::string name_of(const std::string& host) {
  std::string name = host.substr(host.find('@') + 1);
  std::erase_if(name, [](char each) { return each == '[' || each == ']'; });
  return name;
}

std::string address_towards(const std::string& host) {
  try {
    return own_address_towards(name_of(host));
  } catch (const Error& error) {
    const std::string_view text(error.what());  // begins with its code
    throw Error(error.code(), fmt::format("--hosts: {}; --bind says at which address of this machine ranks meet",
                                          text.substr(text.find(": ") + 2)));
  }
}

}  // namespace

std::size_t host_index(const Options& options, int rank) {
  return static_cast<std::size_t>(rank) * options.hosts.size() / static_cast<std::size_t>(options.ranks);
}

std::vector<std::string> remote_command(const Options& options, const std::string& path, const std::string& host,
                                        const Environment& changes) {
  std::string script = fmt::format("echo '{}' >&2; read -r BEELINE_TOKEN; export BEELINE_TOKEN", host_greeting);
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
  // If a host drops packets, ssh without this option waits longer than the ranks do, whose errors do not name ssh.
  if (options.ssh == Options().ssh) command.insert(command.end(), {"-o", "ConnectTimeout=8"});
  command.push_back(host.substr(0, host.find('@') + 1) + name_of(host));  // ssh does not accept brackets
  command.push_back("sh -c " + shell_word(script));
  return command;
}

std::string address_for(const std::vector<std::string>& hosts) {
  std::string address;
  for (const std::string& host : hosts) {
    address = address_towards(host);
    if (!address.starts_with("127.") && address != "::1") return address;
  }
  return address;  // all hosts are this machine
}

}  // namespace beeline::launcher
