// SPDX-License-Identifier: Apache-2.0
/// @file
/// spin-glass: sweeps of a 3-D Heisenberg spin glass by several methods. Prints JSON lines from rank 0.

#include "common/command_line.hpp"
#include "measure.hpp"

int main(int argc, char** argv) {
  using namespace spin_glass;
  apps::CommandLine command({"spin-glass", "Over-relaxation of a 3-D Heisenberg spin glass, in slabs along z",
                             "--sweeps", "sweeps of a timed run; without it, about a tenth of a second each"});
  std::string sizes = "64", couplings = "plus_minus";
  Model model;
  bool weak = false, no_verify = false;
  command.app()
      .add_option("--size", sizes, "lattices, separated by commas: N (N x N x N sites) or XxYxZ, even numbers")
      ->type_name("N,..")
      ->capture_default_str();
  command.app().add_flag("--weak", weak, "the number of sites along z is that of each rank");
  command.app().add_option("--couplings", couplings, "plus_minus or gaussian")->capture_default_str();
  command.app()
      .add_option("--heat-bath", model.heat_bath, "a sweep whose number is a multiple of it is a heat bath; 0: none is")
      ->check(apps::between(0u, 1'000'000'000u))
      ->capture_default_str();
  command.app()
      .add_option("--temperature", model.temperature, "of heat baths")
      ->check(apps::between(0.001, 1000.0))
      ->capture_default_str();
  command.app().add_flag("--no-verify", no_verify, "do not compare with the serial reference");
  return command.run(argc, argv, methods(), [&](beeline::Config& config, const std::vector<MethodInfo>& chosen) {
    model.couplings = parse_couplings(couplings);
    const Options options{
        parse_sizes(sizes, config.size, weak), model, chosen, command.repeats(), !no_verify, command.energy_seconds()};
    fit(config, options.sizes, options.verify, apps::machine_for(config.device));
    return [options](beeline::World& world) { return measure(world, options); };
  });
}
