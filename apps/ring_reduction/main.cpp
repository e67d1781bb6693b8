// SPDX-License-Identifier: Apache-2.0
/// @file
/// ring-reduction: one ring all-reduce under every control scheme. Prints JSON lines from rank 0.

#include "common/command_line.hpp"
#include "measure.hpp"
#include "problem.hpp"

int main(int argc, char** argv) {
  using namespace ring_reduction;
  apps::CommandLine command(
      {"ring-reduction",
       "A float32 vector on each rank, replaced by the sum over the ranks: one ring, under several schemes of control",
       "--reductions", "of each timed run; without it, about a second for each scheme",
       "ranks store into the next rank's memory"});
  std::string size = "64M";
  bool no_verify = false;
  command.app().add_option("--size", size, "bytes of a rank's vector, like 1024, 4K, 64M or 1G")->capture_default_str();
  command.app().add_flag("--no-verify", no_verify, "do not compare with the serial reference");
  return command.run(argc, argv, schemes(), [&](beeline::Config& config, const std::vector<SchemeInfo>& chosen) {
    const Options options{parse_size(size), chosen, command.repeats(), !no_verify, command.energy_seconds()};
    fit(config, options.count, options.verify, apps::machine_for(config.device));
    return [options](beeline::World& world) { return measure(world, options); };
  });
}
