// SPDX-License-Identifier: Apache-2.0
/// @file
/// ring-reduction: one ring all-reduce under every control scheme. Prints JSON lines from rank 0.

#include <CLI/CLI.hpp>

#include "common/program.hpp"
#include "measure.hpp"
#include "problem.hpp"

namespace ring_reduction {

namespace {

int run(const Options& options, const std::vector<std::string>& arguments) {
  beeline::Config config = beeline::Config::from_environment();
  fit(config, options.count, options.verify, apps::machine_for(config.device));
  return apps::run_and_verify("ring-reduction", config, [&](beeline::World& world) {
    beeline::require(!world.mixed(), beeline::Status::unavailable,
                     "ranks store into the next rank's memory: either all have GPUs or none has");
    apps::print_environment(world, arguments);
    return measure(world, options);
  });
}

}  // namespace

}  // namespace ring_reduction

int main(int argc, char** argv) {
  CLI::App app{
      "A float32 vector on each rank, replaced by the sum over the ranks: one ring, under several schemes of "
      "control"};
  std::string size = "64M", method = "all";
  ring_reduction::Options options;
  bool list = false, no_verify = false;
  app.add_option("--size", size, "bytes of a rank's vector, like 1024, 4K, 64M or 1G")->capture_default_str();
  app.add_option("--method", method, "schemes by name, separated by commas, or all")->capture_default_str();
  app.add_option("--reductions", options.reductions, "of each timed run; without it, about a second for each scheme")
      ->check(CLI::Range(1, 1'000'000'000));
  app.add_option("--energy", options.energy_seconds, "seconds for which each method is metered, too: joules")
      ->check(CLI::Range(0.1, 60.0));
  app.add_flag("--no-verify", no_verify, "do not compare with the serial reference");
  app.add_flag("--list", list, "list the schemes and end");
  CLI11_PARSE(app, argc, argv);
  return apps::run_or_refuse("ring-reduction", [&] {
    if (list) {
      apps::list_methods(ring_reduction::schemes(), [](const ring_reduction::SchemeInfo& info) {
        return apps::method_line(info.name, info.id + ": " + info.summary, "");
      });
      return 0;
    }
    options.count = ring_reduction::parse_size(size);
    options.schemes = apps::choose_methods(ring_reduction::schemes(), method);
    options.verify = !no_verify;
    return ring_reduction::run(options, {argv, argv + argc});
  });
}
