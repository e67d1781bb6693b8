// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The command line of a measuring program, and its main function.

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "harness/command_option.hpp"
#include "harness/measurement.hpp"

namespace beeline::bench {

/// A subcommand. Besides its own options it has --methods; if it has several operations, --operations; and, unless
/// Python measures, --iterations, --seed and --no-verify.
struct Measuring {
  Command command;
  const char* summary;
  std::vector<CommandOption> options;
  const char* operations = "all";  ///< operations that are measured when none are named
  /// Programs in Python measure, on their own ranks: this program checks their options, and prints the environment
  /// record.
  bool in_python = false;
};

struct Program {
  const char* summary;
  std::vector<Measuring> commands;
  std::vector<Case> (*cases_of)(Command command);
  void (*stop_peers)();  ///< called on every rank after the last measurement
  /// The descriptions of commands that belong to another program; empty if there are none.
  nlohmann::ordered_json (*commands_elsewhere)() = nullptr;
  const char* without_cases = nullptr;  ///< why commands without cases are refused; nullptr: they are accepted
};

/// Parses the command line, joins the world, measures and prints. Returns the exit status.
[[nodiscard]] int run_program(const Program& program, int argc, char** argv);

}  // namespace beeline::bench
