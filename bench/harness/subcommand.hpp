// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A subcommand: its parser and its description, both made from the same rows.

#include <CLI/CLI.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/program.hpp"

namespace beeline::bench {

class Subcommand {
 public:
  Subcommand(CLI::App& app, const Measuring& measuring, std::vector<Case> cases);
  Subcommand(const Subcommand&) = delete;  // the parser writes into this object
  Subcommand& operator=(const Subcommand&) = delete;

  [[nodiscard]] const Measuring& measuring() const { return measuring_; }
  /// Whether the command line names this subcommand.
  [[nodiscard]] bool is_asked() const { return parser_->parsed(); }
  /// Whether this program was built without the subcommand's cases.
  [[nodiscard]] bool is_empty() const { return cases_.empty(); }
  /// Whether the command line requests the description instead of measurements.
  [[nodiscard]] bool is_to_describe() const { return describe_; }

  /// Name, operations, methods, and options with their values from the command line. Throws invalid_argument for values
  /// that are not valid.
  [[nodiscard]] nlohmann::ordered_json description() const;
  /// Throws invalid_argument for values that are not valid, alone or together.
  [[nodiscard]] Options options() const;

 private:
  const Measuring& measuring_;
  std::vector<Case> cases_;
  std::vector<CommandOption> options_;
  CLI::App* parser_;
  std::map<std::string, GivenText> texts_;
  bool describe_ = false;
};

}  // namespace beeline::bench
