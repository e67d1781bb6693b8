// SPDX-License-Identifier: Apache-2.0
/// @file
/// global-reduction: many values on each rank, one sum for all, by several methods. Prints JSON lines from rank 0.

#include <CLI/CLI.hpp>
#include <algorithm>

#include "common/program.hpp"
#include "measure.hpp"
#include "problem.hpp"

namespace global_reduction {

namespace {

/// Those of `text`, of which "all" stands for those that are available here.
std::vector<MethodInfo> choose(const std::string& text, const beeline::Config& config) {
  std::vector<MethodInfo> chosen = apps::choose_methods(methods(), text);
  if (text == "all") std::erase_if(chosen, [&](const MethodInfo& info) { return !info.why_not(config).empty(); });
  for (const MethodInfo& info : chosen)
    beeline::require(info.why_not(config).empty(), beeline::Status::unavailable,
                     info.name + ": " + info.why_not(config));
  return chosen;
}

int run(const Options& options, beeline::Config config, const std::vector<std::string>& arguments) {
  fit(config, std::ranges::max(options.counts), apps::machine_for(config.device));
  const int code = apps::run_and_verify("global-reduction", config, [&](beeline::World& world) {
    apps::print_environment(world, arguments);
    return measure(world, options);
  });
  finish_mpi();
  return code;
}

}  // namespace

}  // namespace global_reduction

int main(int argc, char** argv) {
  CLI::App app{"Values on each rank, reduced to one sum that every rank has, by several methods"};
  std::string values = "1K,64K,1M,16M", method = "all";
  global_reduction::Options options;
  bool list = false;
  app.add_option("--values", values, "numbers of float32 values of a rank, separated by commas")->capture_default_str();
  app.add_option("--method", method, "names, separated by commas, or all that are available")->capture_default_str();
  app.add_option("--reductions", options.reductions, "of each timed run; without it, about a third of a second each")
      ->check(CLI::Range(1, 1'000'000'000));
  app.add_option("--energy", options.energy_seconds, "seconds for which each method is metered, too: joules")
      ->check(CLI::Range(0.1, 60.0));
  app.add_flag("--list", list, "list the methods and end");
  CLI11_PARSE(app, argc, argv);
  return apps::run_or_refuse("global-reduction", [&] {
    const beeline::Config config = beeline::Config::from_environment();
    if (list) {
      apps::list_methods(global_reduction::methods(), [&](const global_reduction::MethodInfo& info) {
        return apps::method_line(info.name, info.summary, info.why_not(config));
      });
      return 0;
    }
    options.counts = global_reduction::parse_counts(values);
    options.methods = global_reduction::choose(method, config);
    return global_reduction::run(options, config, {argv, argv + argc});
  });
}
