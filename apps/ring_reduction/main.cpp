// SPDX-License-Identifier: Apache-2.0
/// @file
/// ring-reduction: one ring all-reduce under every control scheme. Prints JSON lines from rank 0.

#include <algorithm>

#include "common/command_line.hpp"
#include "measure.hpp"
#include "problem.hpp"

int main(int argc, char** argv) {
  using namespace ring_reduction;
  apps::CommandLine command(
      {"ring-reduction",
       "A float32 vector on each rank, replaced by the sum over the ranks: one ring, under several schemes of control",
       "--reductions", "reductions of a timed run; without it, about a second for each scheme",
       "ranks store into the next rank's memory"});
  std::string size = "64M", chunk;
  Shape shape;
  bool no_verify = false;
  command.app()
      .add_option("--size", size, "bytes of a rank's vector, like 1024, 4K, 64M or 1G, or several: 4K,64K")
      ->type_name("BYTES,..")
      ->capture_default_str();
  command.app()
      .add_option("--chunk", chunk, "bytes of a chunk, like 64K or 4M, or several; without it, by scheme")
      ->type_name("BYTES,..");
  const CLI::Validator count = apps::between(1u, 1024u);
  command.app()
      .add_option("--lanes", shape.lanes, "lanes of a kernel that communicates, at most; without it, by scheme")
      ->check(count);
  command.app()
      .add_option("--blocks", shape.blocks, "blocks that share the sums of a lane whose chunks others move")
      ->check(count);
  command.app()
      .add_option("--service-blocks", shape.service_blocks, "blocks of the device that serve scheme proxy_device")
      ->check(apps::between(1u, 16u));
  command.app().add_flag("--no-verify", no_verify, "do not compare with the serial reference");
  return command.run(argc, argv, schemes(), [&](beeline::Config& config, const std::vector<SchemeInfo>& chosen) {
    const Options options{parse_sizes(size), parse_chunks(chunk, shape), chosen, command.repeats(),
                          !no_verify,        command.energy_seconds()};
    fit(config, *std::max_element(options.counts.begin(), options.counts.end()), options.verify,
        apps::machine_for(config.device));
    return [options](beeline::World& world) { return measure(world, options); };
  });
}
