// SPDX-License-Identifier: Apache-2.0
#include "common/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cmath>

#include "beeline/core/layout.hpp"
#include "beeline/host/run.hpp"
#include "beeline/host/world.hpp"
#include "common/core_share.hpp"
#include "environment/environment.hpp"
#include "environment/load_meter.hpp"

namespace apps {

namespace {

/// Whether another rank prints on behalf of this process. False if the environment names no valid rank.
bool is_quiet_rank() {
  try {
    return beeline::Config::from_environment().rank != 0;
  } catch (const beeline::Error&) {
    return false;
  }
}

}  // namespace

CommandLine::CommandLine(const About& about) : about_(about), app_(about.summary) {
  app_.add_option("--method", methods_, "names, separated by commas, or all that are available")->capture_default_str();
  app_.add_option(about.repeats, repeats_, about.about_repeats)->check(between(1, 1'000'000'000));
  if (!about.on_devices)
    app_.add_option("--energy", energy_seconds_, "seconds for which each method is metered, too: joules")
        ->check(between(0.1, 60.0));
  app_.add_flag("--list", list_, "list the methods and end");
  app_.add_option("--describe", described_ranks_, "print the options, checked for this number of ranks, and end")
      ->check(between(1, static_cast<int>(beeline::max_ranks)));
}

int CommandLine::describe(const std::function<void(beeline::Config&)>& check) const {
  beeline::Config config;
  config.size = described_ranks_, config.device = "cpu", config.threads = about_.on_devices;
  try {
    check(config);
  } catch (const beeline::Error& error) {
    if (error.code() != beeline::Status::no_resource) throw;  // the ranks' choices of devices decide
  }
  Json options = Json::array();
  for (const CLI::Option* option : app_.get_options()) {
    const std::string name = option->get_single_name(), type = option->get_type_name();
    if (name == "help" || name == "list" || name == "describe") continue;
    const std::size_t colon = std::min(type.find(':'), type.size());
    const std::string limits = type.substr(std::min(colon + 1, type.size())), initial = option->get_default_str();
    const bool is_flag = option->get_items_expected_max() == 0;
    std::string help = option->get_description() + (limits.empty() ? "" : fmt::format(" ({})", limits));
    help.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(help.front())));
    options.push_back({{"name", name},
                       {"type", is_flag ? "flag" : type.substr(0, colon)},
                       {"help", help},
                       {"default", initial.empty() ? Json() : Json(initial)}});
  }
  print_line(0, {{"name", about_.name}, {"summary", about_.summary}, {"options", options}});
  return 0;
}

int CommandLine::run_and_verify(const beeline::Config& config, const std::vector<std::string>& arguments,
                                const Measure& measure) const {
  if (energy_seconds_ > 0) beeline::bench::check_window(std::llround(energy_seconds_ * 1e9), config);
  const int shared_cores = about_.one_core_each ? stay_on_a_core(config) : 0;
  std::atomic<bool> good{true};
  const int code = beeline::run(config, [&](beeline::World& world) {
    if (about_.unmixed != nullptr)
      beeline::require(!world.mixed(), beeline::Status::unavailable,
                       fmt::format("{}: either all have GPUs or none has", about_.unmixed));
    Json environment = beeline::bench::environment_record(world, arguments);
    environment["host"]["one_core_each"] = shared_cores > 0;
    if (shared_cores > 0) environment["host"]["cores_allowed"] = shared_cores;
    print_line(world.rank(), environment);
    if (!measure(world)) good = false;
  });
  return exit_code(code, good);
}

int CommandLine::run_and_verify(const beeline::Config& config, const std::vector<std::string>& arguments,
                                const MeasureOnDevices& measure) const {
  const Devices devices = devices_for(config);
  print_line(0, beeline::bench::environment_record(described(devices), arguments));
  try {
    return exit_code(0, measure(devices));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", about_.name, error.what());
    return 1;
  }
}

int CommandLine::exit_code(int code, bool good) const {
  if (!good && !is_quiet_rank()) fmt::print(stderr, "{}: a method's result is wrong: see \"verified\"\n", about_.name);
  return code != 0 ? code : good ? 0 : 1;
}

int CommandLine::run_or_refuse(const std::function<int()>& work) const {
  try {
    return work();
  } catch (const beeline::Error& error) {
    if (is_quiet_rank()) return 0;
    fmt::print(stderr, "{}: {}\n", about_.name, error.what());
    return 2;
  }
}

}  // namespace apps
