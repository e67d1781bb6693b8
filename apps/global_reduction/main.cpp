// SPDX-License-Identifier: Apache-2.0
/// @file
/// global-reduction: sums many values of each rank over all ranks, by several methods. Prints JSON lines from rank 0.

#include "common/command_line.hpp"
#include "measure.hpp"
#include "problem.hpp"

int main(int argc, char** argv) {
  using namespace global_reduction;
  apps::CommandLine command({"global-reduction",
                             "Values on each rank, reduced to one sum that every rank has, by several methods",
                             "--reductions", "reductions of a timed run; without it, about a third of a second each"});
  std::string values = "1K,64K,1M,16M";
  command.app()
      .add_option("--values", values, "numbers of float32 values of a rank, separated by commas, like 1000, 64K or 16M")
      ->type_name("N,..")
      ->capture_default_str();
  const int code =
      command.run(argc, argv, methods(), [&](beeline::Config& config, const std::vector<MethodInfo>& chosen) {
        const Options options{parse_counts(values), chosen, command.repeats(), command.energy_seconds()};
        fit(config, std::ranges::max(options.counts), apps::machine_for(config.device));
        return [options](beeline::World& world) { return measure(world, options); };
      });
  finish_mpi();
  return code;
}
