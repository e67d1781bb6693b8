// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The command line of an application, and the frame of its main function: methods by name, refusals, wrong results.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/core/error.hpp"
#include "common/devices.hpp"
#include "common/program.hpp"
#include "common/quantity.hpp"

namespace apps {

/// Properties that distinguish one application's command line from another's.
struct About {
  const char *name, *summary;
  const char *repeats, *about_repeats;  ///< the option for repetitions in a timed run: name and help
  const char* unmixed = nullptr;        ///< why ranks cannot mix GPUs and CPUs; nullptr: they can
  bool on_devices = false;              ///< whether one process drives the devices, without ranks
  bool one_core_each = false;           ///< whether host ranks call `stay_on_a_core`
};

/// A limit whose help names it as "LEAST to MOST". NaN is outside, which CLI::Range lets pass.
template <class Number>
[[nodiscard]] CLI::Validator between(Number least, Number most) {
  const auto check = [least, most](const std::string& text) {
    Number value{};
    const bool is_within = CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
    return is_within ? std::string() : fmt::format("Value {} not in range {} to {}", text, least, most);
  };
  return CLI::Validator(check, fmt::format("{} to {}", least, most));
}

/// The elements of `all` named by `text`, in its order: names separated by commas, or "all" for those that run in such
/// a world. Throws invalid_argument for an unknown name, listing the known ones, and unavailable for a method that does
/// not run.
template <class Info>
[[nodiscard]] std::vector<Info> choose_methods(const std::vector<Info>& all, const std::string& text,
                                               const beeline::Config& config) {
  std::vector<Info> chosen;
  if (text != "all")
    for (const std::string& name : list_items(text)) chosen.push_back(find_method(all, name));
  if (text == "all")
    std::ranges::copy_if(all, std::back_inserter(chosen),
                         [&](const Info& info) { return info.reason(config).empty(); });
  if (text == "all" && chosen.empty()) chosen = all;  // refused later, with the reason
  for (const Info& info : chosen)
    beeline::require(info.reason(config).empty(), beeline::Status::unavailable,
                     "--method: " + info.name + ": " + info.reason(config));
  beeline::require(!chosen.empty(), beeline::Status::invalid_argument, "--method: no method is named");
  return chosen;
}

class CommandLine {
 public:
  /// Returns whether every result was right; every rank returns the same.
  using Measure = std::function<bool(beeline::World&)>;
  /// The same, of a program without ranks.
  using MeasureOnDevices = std::function<bool(const Devices&)>;

  explicit CommandLine(const About& about);

  /// The parser, to which the application adds its own options.
  [[nodiscard]] CLI::App& app() { return app_; }
  /// Repetitions of the work in a timed run; 0: as many as make the run long enough.
  [[nodiscard]] int repeats() const { return repeats_; }
  /// Seconds for which each method's energy is metered; 0: no method is metered.
  [[nodiscard]] double energy_seconds() const { return energy_seconds_; }

  /// Describes the options, lists the methods, or measures the methods that the command line names. `prepare(config,
  /// methods)` adapts the configuration to the needs of the world, and returns a `Measure`, or a `MeasureOnDevices` for
  /// as many devices as `beeline-launch -n` names. Returns the exit code of main: 0; 1 when a rank failed or a result
  /// was wrong; 2 when the request is refused before a world exists. Rank 0 prints the reason.
  template <class Info, class Prepare>
  [[nodiscard]] int run(int argc, char** argv, const std::vector<Info>& all, Prepare prepare) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& refused) {
      return app_.exit(refused) == 0 ? 0 : 2;
    }
    return run_or_refuse([&] {
      if (described_ranks_ > 0)
        return describe([&](beeline::Config& config) { static_cast<void>(prepare(config, all)); });
      beeline::Config config = beeline::Config::from_environment();
      if (list_) {
        for (const Info& info : all) print_line(config.rank, method_line(info, config));
        return 0;
      }
      const auto measure = prepare(config, choose_methods(all, methods_, config));
      return run_and_verify(config, {argv, argv + argc}, measure);
    });
  }

 private:
  /// Prints the options after `check(config)`, for a world of `described_ranks_` host ranks.
  [[nodiscard]] int describe(const std::function<void(beeline::Config&)>& check) const;
  [[nodiscard]] int run_or_refuse(const std::function<int()>& work) const;
  [[nodiscard]] int run_and_verify(const beeline::Config& config, const std::vector<std::string>& arguments,
                                   const Measure& measure) const;
  [[nodiscard]] int run_and_verify(const beeline::Config& config, const std::vector<std::string>& arguments,
                                   const MeasureOnDevices& measure) const;
  [[nodiscard]] int exit_code(int code, bool good) const;

  About about_;
  CLI::App app_;
  std::string methods_ = "all";
  int repeats_ = 0;
  double energy_seconds_ = 0;
  bool list_ = false;
  int described_ranks_ = 0;  ///< 0: no description was requested
};

}  // namespace apps
