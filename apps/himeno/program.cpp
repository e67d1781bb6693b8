// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include "common/command_line.hpp"
#include "measure.hpp"
#include "memory_budget.hpp"

namespace himeno {

int run_program(int argc, char** argv, const std::vector<MethodInfo>& methods) {
  apps::CommandLine command({"himeno",
                             "The Himeno benchmark: 19-point Jacobi relaxation of the 3-D Poisson equation, by several "
                             "methods of communication",
                             "--iterations", "iterations of a timed run; without it, about a second for each method",
                             "ranks store into their neighbours' arrays"});
  std::string size = "S";
  bool no_verify = false, weak = false;
  command.app()
      .add_option("--size", size,
                  "XS, S, M, L, XL or XxYxZ points (the official i, j, k), 3 to 32768 along each axis; ranks divide z")
      ->capture_default_str();
  command.app().add_flag("--weak", weak, "the size is each rank's: the grid is as many times longer along z");
  command.app().add_flag("--no-verify", no_verify, "do not compare with the serial reference");
  return command.run(argc, argv, methods, [&](beeline::Config& config, const std::vector<MethodInfo>& chosen) {
    const Options options{parse_size(size, weak ? config.size : 1), chosen, command.repeats(), !no_verify,
                          command.energy_seconds()};
    fit(config, options.size, options.verify, machine_for(config.device));
    return [options](beeline::World& world) { return measure(world, options); };
  });
}

}  // namespace himeno
