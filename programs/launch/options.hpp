// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the command line of beeline-launch asks for.

#include <optional>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"

namespace beeline::launcher {

struct Options {
  int ranks = 0;
  bool threads = false;               ///< one process whose threads are the ranks
  bool keep_going = false;            ///< a rank that fails does not end the others
  Config environment;                 ///< the settings that the ranks use unless an option changes them
  std::optional<std::string> device;  ///< replaces the environment's, as do the next options
  std::optional<int> split_nodes;
  std::optional<double> deadline_s;
  bool check = false;
  std::string bind;                ///< host[:port] of the rendezvous server; empty: an address that the hosts reach
  std::vector<std::string> hosts;  ///< hosts of consecutive blocks of ranks; empty: this machine
  std::string ssh = "ssh";         ///< starts a command on a host: words, followed by the host and the command
  std::optional<std::string> standard_input;  ///< ranks that get standard input: none, 0 or all
  double grace_s = 25;                        ///< time for the ranks to save, between SIGTERM and the end of the world
  bool secure = false;                        ///< replaces the environment's: connections are encrypted
  bool trusted_network = false;               ///< ranks on several hosts need no `secure`
  bool no_prefix = false;
  bool json = false;                 ///< standard output carries the ranks' JSON lines only
  std::vector<std::string> command;  ///< program and arguments
};

}  // namespace beeline::launcher
