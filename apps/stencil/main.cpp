// SPDX-License-Identifier: Apache-2.0
/// @file
/// stencil: 3-D finite differences with a halo four planes deep, by the four listings of seed 001. Prints JSON lines.

#include <algorithm>

#include "common/command_line.hpp"
#include "measure.hpp"

int main(int argc, char** argv) {
  using namespace stencil;
  apps::CommandLine command({.name = "stencil",
                             .summary = "3-D finite differences of float32 points, whose planes devices share, in the "
                                        "four listings of seed 001",
                             .repeats = "--steps",
                             .about_repeats = "steps of a timed run; without it, about a tenth of a second each",
                             .on_devices = true});
  std::string size = "64";
  bool no_verify = false;
  command.app()
      .add_option("--size", size, "volumes, separated by commas: N (N x N x N points) or XxYxZ; devices share Z")
      ->type_name("VOLUME,..")
      ->capture_default_str();
  command.app().add_flag("--no-verify", no_verify, "do not compare with the serial reference");
  return command.run(argc, argv, methods(), [&](beeline::Config& config, const std::vector<MethodInfo>& chosen) {
    const Options options{parse_sizes(size), chosen, command.repeats(), !no_verify};
    const bool objects = std::ranges::any_of(chosen, [](const MethodInfo& info) { return info.name == "objects"; });
    check(apps::devices_for(config), options.sizes, objects, options.verify);
    return [options](const apps::Devices& devices) { return measure(devices, options); };
  });
}
