// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The table of settings: what a `BEELINE_*` variable takes, which field of `Config` it sets, and how both are shown.
/// `Config::from_environment`, `beeline info settings` and docs/settings.md read it.

#include <span>
#include <string>
#include <string_view>

#include "beeline/core/config.hpp"

namespace beeline::detail {

struct Setting {
  const char* variable;
  const char* meaning;
  /// Read only in processes that `beeline run` has started: in others it may be left from an outer `beeline run`.
  bool is_of_launcher;
  std::string (*values)();  ///< the valid ones, for errors and documents
  /// Throws invalid_argument naming the variable, `text` and the valid values.
  void (*read)(Config& config, const Setting& setting, const std::string& text);
  std::string (*show)(const Config& config);
};

/// In the order in which they are shown. A setting that limits another stands before it.
[[nodiscard]] std::span<const Setting> settings();

/// Reads those that the environment has. Throws as `Setting::read`.
///   of_launcher  also those that `beeline run` sets for its ranks
void read_environment(Config& config, bool of_launcher);

/// Changes one setting, or none if it throws invalid_argument: for a name that no setting has, with the nearest one,
/// and as `Setting::read`.
///   name  of the variable, with or without BEELINE_
void set(Config& config, std::string_view name, const std::string& text);

}  // namespace beeline::detail
