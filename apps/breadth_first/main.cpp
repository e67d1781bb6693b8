// SPDX-License-Identifier: Apache-2.0
/// @file
/// breadth-first: breadth-first search on Graph500 graphs, by several methods. Prints JSON lines from rank 0.

#include <fmt/format.h>

#include "common/command_line.hpp"
#include "measure.hpp"
#include "memory.hpp"

int main(int argc, char** argv) {
  using namespace breadth_first;
  apps::CommandLine command({"breadth-first",
                             "Breadth-first search on Graph500 graphs, whose vertices ranks share, by several methods "
                             "of communication",
                             "--roots", "roots to search from, as the rules of Graph500 choose them; without it, 64",
                             "ranks store into each other's memory", false, true});
  Options options;
  options.scale = 16;
  std::uint32_t root = 0;
  bool no_verify = false;
  command.app()
      .add_option("--scale", options.scale, "the graph has 2^SCALE vertices, and 16 edges for each")
      ->check(apps::between(least_scale, largest_scale))
      ->capture_default_str();
  CLI::Option* const one = command.app().add_option("--root", root, "search from this vertex alone");
  command.app().add_flag("--validate", options.validate, "check the trees of all roots, not of the first alone");
  command.app().add_flag("--no-verify", no_verify,
                         "do not check the first tree, nor compare its levels with the serial reference");
  return command.run(argc, argv, methods(), [&](beeline::Config& config, const std::vector<MethodInfo>& chosen) {
    using beeline::require, beeline::Status;
    const std::uint64_t vertices = std::uint64_t{1} << options.scale;
    require(one->count() == 0 || command.repeats() == 0, Status::invalid_argument, "--root excludes --roots");
    require(root < vertices, Status::invalid_argument,
            fmt::format("--root: {} is no vertex of a graph of scale {}; valid: 0 to {}", root, options.scale,
                        vertices - 1));
    require(static_cast<std::uint64_t>(command.repeats()) <= vertices, Status::invalid_argument,
            fmt::format("--roots: a graph of scale {} has {} vertices", options.scale, vertices));
    if (one->count() > 0) options.root = root;
    if (command.repeats() > 0) options.roots = static_cast<std::size_t>(command.repeats());
    options.methods = chosen, options.verify = !no_verify, options.energy_seconds = command.energy_seconds();
    fit(config, options.scale, options.verify, apps::machine_for(config.device));
    return [&options](beeline::World& world) { return measure(world, options); };
  });
}
