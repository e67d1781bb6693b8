// SPDX-License-Identifier: Apache-2.0
#include "beeline/core/config.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "core/setting.hpp"

namespace beeline {

namespace {

/// Variables that other parts read: programs, tools, builds and tests.
constexpr std::array<std::string_view, 12> other_variables = {
    "BEELINE_BATCHES",  "BEELINE_BIN",          "BEELINE_COMMIT",  "BEELINE_CUDA_ARCHITECTURES",
    "BEELINE_JOBS",     "BEELINE_NCCL",         "BEELINE_OFFLINE", "BEELINE_POWERCAP",
    "BEELINE_PROGRESS", "BEELINE_TORCH_NATIVE", "BEELINE_UCX",     "BEELINE_UPDATE_GENERATED"};

/// Smallest number of characters to insert, remove or replace (Levenshtein distance).
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// The setting whose name has the smallest edit distance from `variable`.
const detail::Setting& nearest_to(std::string_view variable) {
  return *std::ranges::min_element(detail::settings(), {}, [variable](const detail::Setting& each) {
    return edits_between(each.variable, variable);
  });
}

}  // namespace

void detail::set(Config& config, std::string_view name, const std::string& text) {
  constexpr std::string_view prefix = "BEELINE_";
  const std::string variable = std::string(name.starts_with(prefix) ? "" : prefix).append(name);
  const auto found = std::ranges::find(settings(), variable, &Setting::variable);
  require(found != settings().end(), Status::invalid_argument,
          fmt::format("{} is no setting: the nearest one is {}", variable, nearest_to(variable).variable));
  Config changed = config;
  found->read(changed, *found, text);
  config = std::move(changed);
}

std::vector<std::string> unknown_variables(const char* const* entries) {
  const std::span<const detail::Setting> settings = detail::settings();
  std::vector<std::string> warnings;
  for (; entries != nullptr && *entries != nullptr; ++entries) {
    const std::string_view entry = *entries, variable = entry.substr(0, entry.find('='));
    if (!variable.starts_with("BEELINE_") || variable.starts_with("BEELINE_TEST_") ||
        variable.starts_with("BEELINE_WITH_") ||
        std::ranges::find(settings, variable, &detail::Setting::variable) != settings.end() ||
        std::ranges::find(other_variables, variable) != other_variables.end())
      continue;
    warnings.push_back(fmt::format("{} is no variable of Beeline, and is ignored: the nearest one is {}", variable,
                                   nearest_to(variable).variable));
  }
  return warnings;
}

Config Config::from_environment(Version headers) {
  detail::require_same_version("Config::from_environment", headers, detail::version_of({sizeof(Config)}));
  Config config;
  Place place = find_place();
  config.launcher = std::move(place.launcher);
  config.rank = place.rank;
  config.size = place.size;
  detail::read_environment(config, config.launcher.name == "beeline");
  static std::atomic<bool> has_warned = false;
  if (config.rank == 0 && config.log_level >= LogLevel::warning && !has_warned.exchange(true))
    for (const std::string& warning : unknown_variables(environ)) log(LogLevel::warning, warning);
  return config;
}

std::vector<ConfigEntry> describe(const Config& config) {
  std::vector<ConfigEntry> entries;
  for (const detail::Setting& setting : detail::settings())
    entries.push_back({setting.variable, setting.show(config), setting.values(), setting.meaning});
  return entries;
}

}  // namespace beeline
