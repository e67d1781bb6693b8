// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The table of settings: the values of each `BEELINE_*` variable, the field of `Config` that it sets, and their texts.
/// `Config::from_environment`, `beeline info settings` and docs/settings.md use this table.

#include <span>
#include <string>
#include <string_view>

#include "beeline/core/config.hpp"

namespace beeline::detail {

struct Setting {
  const char* variable;
  const char* meaning;
  /// The variable is read only in processes that `beeline run` has started; in others it may come from an outer
  /// `beeline run`.
  bool is_of_launcher;
  std::string (*values)();  ///< the valid values, for errors and documents
  /// Throws invalid_argument naming the variable, `text` and the valid values.
  void (*read)(Config& config, const Setting& setting, const std::string& text);
  std::string (*show)(const Config& config);
};

/// All settings, in the order of their display. A setting that limits another precedes it.
[[nodiscard]] std::span<const Setting> settings();

/// Reads the settings that are set in the environment. Throws as `Setting::read`.
///   of_launcher  also reads the settings that `beeline run` sets for its ranks
void read_environment(Config& config, bool of_launcher);

/// Changes one setting. Throws as `Setting::read`, and invalid_argument for an unknown name, naming the nearest known
/// one; then no setting changes.
///   name  the variable, with or without BEELINE_
void set(Config& config, std::string_view name, const std::string& text);

}  // namespace beeline::detail
