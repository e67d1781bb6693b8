// SPDX-License-Identifier: Apache-2.0
/// @file
/// global-reduction: many values on each rank, one sum for all, by several methods. Prints JSON lines from rank 0.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>

#include "beeline/host/run.hpp"
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
  std::atomic<bool> good{true};
  const int code = beeline::run(config, [&](beeline::World& world) {
    apps::print_environment(world, arguments);
    if (!measure(world, options)) good = false;
  });
  finish_mpi();
  if (!good && !apps::is_quiet_rank())
    std::fputs("global-reduction: a method's result is wrong: see \"verified\"\n", stderr);
  return code != 0 ? code : good ? 0 : 1;
}

void list_methods(const beeline::Config& config) {
  if (config.rank != 0) return;
  for (const MethodInfo& info : methods())
    std::puts(apps::method_line(info.name, info.summary, info.why_not(config)).dump().c_str());
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
  app.add_flag("--list", list, "list the methods and end");
  CLI11_PARSE(app, argc, argv);
  return apps::run_or_refuse("global-reduction", [&] {
    const beeline::Config config = beeline::Config::from_environment();
    if (list) {
      global_reduction::list_methods(config);
      return 0;
    }
    options.counts = global_reduction::parse_counts(values);
    options.methods = global_reduction::choose(method, config);
    return global_reduction::run(options, config, {argv, argv + argc});
  });
}
