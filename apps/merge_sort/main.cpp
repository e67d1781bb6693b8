// SPDX-License-Identifier: Apache-2.0
/// @file
/// merge-sort: keys in the memory of several devices, sorted as one sequence. Prints JSON lines.

#include "common/command_line.hpp"
#include "measure.hpp"

int main(int argc, char** argv) {
  using namespace merge_sort;
  apps::CommandLine command({.name = "merge-sort",
                             .summary = "A merge sort of 64-bit keys, which devices share: each sorts its own, then "
                                        "pairs swap keys and merge",
                             .repeats = "--sorts",
                             .about_repeats = "timed sorts; without it, five",
                             .on_devices = true});
  std::string keys = "64K";
  Options options;
  bool no_verify = false;
  command.app()
      .add_option("--keys", keys, "numbers of keys of all devices together, separated by commas")
      ->type_name("KEYS,..")
      ->capture_default_str();
  command.app()
      .add_option("--bits", options.bits, "random bits of a key: few bits make many equal keys")
      ->check(apps::between(1u, 64u))
      ->capture_default_str();
  command.app().add_flag("--no-verify", no_verify, "do not check order and contents");
  return command.run(argc, argv, methods(), [&](beeline::Config& config, const std::vector<MethodInfo>& chosen) {
    options.keys = parse_keys(keys);
    options.methods = chosen, options.sorts = command.repeats(), options.verify = !no_verify;
    check(apps::devices_for(config), options.keys, options.verify);
    return [options](const apps::Devices& devices) { return measure(devices, options); };
  });
}
