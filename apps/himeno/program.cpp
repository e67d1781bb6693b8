// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <CLI/CLI.hpp>
#include <string>

#include "beeline/core/error.hpp"
#include "common/program.hpp"
#include "measure.hpp"
#include "memory_budget.hpp"

namespace himeno {

namespace {

int run(const Options& options, const std::vector<std::string>& arguments) {
  beeline::Config config = beeline::Config::from_environment();
  const Machine machine = machine_for(config.device);
  for (const MethodInfo& info : options.methods)
    beeline::require(!info.needs_gpu || !machine.gpus.empty(), beeline::Status::unavailable,
                     info.name + " " + apps::why_no_gpu(config));
  fit(config, options.size, options.verify, machine);
  return apps::run_and_verify("himeno", config, [&](beeline::World& world) {
    beeline::require(!world.mixed(), beeline::Status::unavailable,
                     "ranks store into their neighbours' arrays: either all have GPUs or none has");
    apps::print_environment(world, arguments);
    return measure(world, options);
  });
}

}  // namespace

int run_program(int argc, char** argv, const std::vector<MethodInfo>& methods) {
  CLI::App app{
      "The Himeno benchmark: 19-point Jacobi relaxation of the 3-D Poisson equation, by several methods of "
      "communication"};
  std::string size = "S", method = "all";
  Options options;
  bool list = false, no_verify = false;
  app.add_option("--size", size, "XS, S, M, L, XL or XxYxZ points (the official i, j, k)")->capture_default_str();
  app.add_option("--method", method, "names, separated by commas, or all")->capture_default_str();
  app.add_option("--iterations", options.iterations, "of each timed run; without it, about a second for each method")
      ->check(CLI::Range(1, 1'000'000'000));
  app.add_option("--energy", options.energy_seconds, "seconds for which each method is metered, too: joules")
      ->check(CLI::Range(0.1, 60.0));
  app.add_flag("--no-verify", no_verify, "do not compare with the serial reference");
  app.add_flag("--list", list, "list the methods and end");
  CLI11_PARSE(app, argc, argv);
  return apps::run_or_refuse("himeno", [&] {
    if (list) {
      const beeline::Config config = beeline::Config::from_environment();
      apps::list_methods(methods, [&](const MethodInfo& info) {
        return apps::method_line(info.name, info.summary, info.needs_gpu ? apps::why_no_gpu(config) : "");
      });
      return 0;
    }
    options.size = parse_size(size);
    options.methods = apps::choose_methods(methods, method);
    options.verify = !no_verify;
    return run(options, {argv, argv + argc});
  });
}

}  // namespace himeno
