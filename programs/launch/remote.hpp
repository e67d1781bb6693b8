// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Ranks on other hosts, which ssh starts.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "options.hpp"
#include "process.hpp"

namespace beeline::launcher {

/// The host of a rank, as an index of Options::hosts: consecutive ranks form blocks, in the order of the hosts.
[[nodiscard]] std::size_t host_index(const Options& options, int rank);

/// The line that a host's shell prints on standard error first.
inline constexpr std::string_view host_greeting = "beeline-launch: the host answers";

/// The command that starts the program on a host, in the same folder and with the same variables as on this machine.
/// The first line of its standard input is the world's token, which therefore appears in no list of processes; each
/// further line names a signal for the rank, as `USR1`. When that input ends, as with the connection, the rank is
/// ended.
[[nodiscard]] std::vector<std::string> remote_command(const Options& options, const std::string& path,
                                                      const std::string& host, const Environment& changes);

/// An address of this machine that the hosts reach. Throws invalid_argument if the name of a host is unknown.
[[nodiscard]] std::string address_for(const std::vector<std::string>& hosts);

}  // namespace beeline::launcher
