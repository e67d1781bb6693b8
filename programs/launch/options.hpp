// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the command line of beeline-launch asks for.

#include <optional>
#include <string>
#include <vector>

namespace beeline::launch {

struct Options {
  int ranks = 0;
  bool threads = false;               ///< one process whose threads are the ranks
  bool keep_going = false;            ///< a rank that fails does not end the others
  std::optional<std::string> device;  ///< BEELINE_DEVICE
  std::optional<int> split_nodes;     ///< BEELINE_SPLIT_NODES: nodes that this machine counts as
  std::optional<double> deadline_s;   ///< BEELINE_DEADLINE_S
  bool check = false;                 ///< BEELINE_CHECK
  std::string bind;                   ///< host[:port] of the rendezvous server; empty: where the hosts reach it
  std::vector<std::string> hosts;     ///< where ranks run, by blocks; empty: here
  std::string ssh = "ssh";            ///< starts a command on a host: words, followed by the host and the command
  std::optional<std::string> standard_input;  ///< none, 0 or all: ranks that get it
  double grace_s = 25;                        ///< for the ranks to save, between SIGTERM and the end of the world
  bool trusted_network = false;  ///< no warning that whoever reaches the ranks' ports can write to their memory
  bool no_prefix = false;
  bool json = false;                 ///< standard output carries the ranks' JSON lines only
  std::vector<std::string> command;  ///< program and arguments
};

}  // namespace beeline::launch
