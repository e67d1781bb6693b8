// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Ranks on other hosts, which ssh starts.

#include <cstddef>
#include <string>
#include <vector>

#include "options.hpp"
#include "process.hpp"

namespace beeline::launch {

/// The host of a rank, as an index of Options::hosts: blocks of ranks in the order of the hosts.
[[nodiscard]] std::size_t host_index(const Options& options, int rank);

/// The command that starts the program on a host, in the folder and with the variables that it would have here. The
/// first line of its standard input is the world's token, which no list of processes shows; each further line names a
/// signal for the rank, as `USR1`. Where that input ends, as with the connection, the rank is ended.
[[nodiscard]] std::vector<std::string> remote_command(const Options& options, const std::string& path,
                                                      const std::string& host, const Environment& changes);

/// An address of this machine that the hosts reach. Throws invalid_argument where a host is not known by its name.
[[nodiscard]] std::string address_for(const std::vector<std::string>& hosts);

}  // namespace beeline::launch
