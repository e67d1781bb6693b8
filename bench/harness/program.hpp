// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The command line of a program that measures, and what it does with it.

#include <span>
#include <vector>

#include "harness/measurement.hpp"

namespace beeline::bench {

/// A subcommand.
struct Measuring {
  Command command;
  const char *name, *summary;
  const char* sizes;               ///< what its sizes are; nullptr where it has none
  const char* operations = "all";  ///< that are measured when none are named
};

struct Program {
  const char* description;
  std::span<const Measuring> commands;
  std::vector<Case> (*cases_of)(Command command);
  void (*stop_peers)();  ///< on every rank, behind the last measurement
};

/// Parses the command line, joins the world, measures and prints. The exit status.
[[nodiscard]] int run_program(const Program& program, int argc, char** argv);

}  // namespace beeline::bench
