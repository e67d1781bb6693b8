// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The command line of a program that measures, and what it does with it.

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "harness/command_option.hpp"
#include "harness/measurement.hpp"

namespace beeline::bench {

/// A subcommand. Besides its options it has --methods, of several operations --operations and, unless Python measures,
/// --iterations, --seed and --no-verify.
struct Measuring {
  Command command;
  const char* summary;
  std::vector<CommandOption> options;
  const char* operations = "all";  ///< that are measured when none are named
  /// By programs in Python, on ranks of their own: this one checks their options, and prints the environment record.
  bool in_python = false;
};

struct Program {
  const char* summary;
  std::vector<Measuring> commands;
  std::vector<Case> (*cases_of)(Command command);
  void (*stop_peers)();  ///< on every rank, behind the last measurement
  /// The descriptions of commands that are another program's; empty: there are none.
  nlohmann::ordered_json (*commands_elsewhere)() = nullptr;
  const char* without_cases = nullptr;  ///< why commands without cases are refused; nullptr: they are not
};

/// Parses the command line, joins the world, measures and prints. The exit status.
[[nodiscard]] int run_program(const Program& program, int argc, char** argv);

}  // namespace beeline::bench
