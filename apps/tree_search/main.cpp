// SPDX-License-Identifier: Apache-2.0
/// @file
/// tree-search: an unbalanced tree, searched level by level and by tasks. Prints JSON lines from rank 0.

#include "common/command_line.hpp"
#include "measure.hpp"

int main(int argc, char** argv) {
  using namespace tree_search;
  apps::CommandLine command(
      {"tree-search", "Counts the nodes of an unbalanced tree, whose shape shows only as it is searched", "--searches",
       "searches of a timed run; without it, about a second for each method", "ranks store into each other's memory"});
  std::uint64_t nodes = 2'000'000, seed = 1;
  bool no_verify = false;
  command.app().add_option("--nodes", nodes, "nodes that the tree is expected to have")->capture_default_str();
  command.app().add_option("--seed", seed, "seed of the tree")->capture_default_str();
  command.app().add_flag("--no-verify", no_verify, "do not compare with the serial search");
  return command.run(argc, argv, methods(), [&](beeline::Config& config, const std::vector<MethodInfo>& chosen) {
    const Options options{make_tree(nodes, seed), chosen, command.repeats(), !no_verify, command.energy_seconds()};
    fit(config, apps::machine_for(config.device));
    return [options](beeline::World& world) { return measure(world, options); };
  });
}
