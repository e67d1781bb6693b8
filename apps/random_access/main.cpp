// SPDX-License-Identifier: Apache-2.0
/// @file
/// random-access: random updates of a table that all ranks share, by several methods. Prints JSON lines from rank 0.

#include "common/command_line.hpp"
#include "measure.hpp"

int main(int argc, char** argv) {
  using namespace random_access;
  apps::CommandLine command({"random-access", "RandomAccess of the HPC Challenge: random updates of a shared table",
                             "--divisor",
                             "a run makes 1 of so many of the updates; without it as many as take about a second",
                             "ranks store into each other's memory", false, true});
  std::string words = "16M";
  bool weak = false, no_verify = false;
  command.app()
      .add_option("--words", words,
                  "numbers of 8-byte words of the table, powers of two separated by commas, like 64K or 16M")
      ->type_name("N,..")
      ->capture_default_str();
  command.app().add_flag("--weak", weak, "the words are those of each rank, not of all");
  command.app().add_flag("--no-verify", no_verify, "do not apply the updates again to count errors");
  const int code =
      command.run(argc, argv, methods(), [&](beeline::Config& config, const std::vector<MethodInfo>& chosen) {
        const Options options{parse_words(words, config.size, weak), chosen, command.repeats(), !no_verify,
                              command.energy_seconds()};
        fit(config, options.tables, apps::machine_for(config.device));
        return [options](beeline::World& world) { return measure(world, options); };
      });
  finish_mpi();
  return code;
}
