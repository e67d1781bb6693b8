// SPDX-License-Identifier: Apache-2.0
/// @file
/// jacobi: 2-D Jacobi relaxation, a halo exchange in each iteration, by several methods. Prints JSON lines from rank 0.

#include <fmt/format.h>

#include "common/command_line.hpp"
#include "measure.hpp"
#include "problem.hpp"

int main(int argc, char** argv) {
  using namespace jacobi;
  apps::CommandLine command(
      {"jacobi",
       "2-D Jacobi relaxation of float32 points, whose rows ranks share, by several methods of "
       "communication",
       "--iterations", "iterations of a timed run; without it, about a tenth of a second each; with --until, at most",
       "ranks store into their neighbours' rows"});
  std::string size = "16,64,256,1K,4K";
  Options options;
  options.every = 100;
  bool no_verify = false;
  command.app()
      .add_option(
          "--size", size,
          "grids, separated by commas: N (N x N points for each rank) or COLUMNSxROWS, whose rows the ranks share")
      ->type_name("GRID,..")
      ->capture_default_str();
  CLI::Option* until = command.app().add_option(
      "--until", options.until, "iterate until no point changes by more, instead of a number of iterations");
  command.app()
      .add_option("--every", options.every, "iterations between two looks at the largest change")
      ->check(apps::between(1, 1'000'000))
      ->needs(until)
      ->capture_default_str();
  command.app().add_flag("--no-verify", no_verify, "do not compare with the serial reference");
  return command.run(argc, argv, methods(), [&](beeline::Config& config, const std::vector<MethodInfo>& chosen) {
    beeline::require(until->count() == 0 || options.until > 0, beeline::Status::invalid_argument,
                     fmt::format("--until: {} is no change; valid: numbers above 0", options.until));
    options.sizes = parse_sizes(size, config.size);
    options.methods = chosen, options.verify = !no_verify;
    options.iterations = command.repeats(), options.energy_seconds = command.energy_seconds();
    fit(config, options.sizes, options.verify, apps::machine_for(config.device));
    return [&options](beeline::World& world) { return measure(world, options); };
  });
}
