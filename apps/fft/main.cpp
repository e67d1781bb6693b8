// SPDX-License-Identifier: Apache-2.0
/// @file
/// fft: the Fourier transform of one vector over the devices of a process. Prints JSON lines.

#include "common/command_line.hpp"
#include "measure.hpp"

int main(int argc, char** argv) {
  using namespace fft;
  apps::CommandLine command(
      {.name = "fft",
       .summary = "The Fourier transform of a vector of complex float32, a part on each device of one process",
       .repeats = "--transforms",
       .about_repeats = "transforms of a timed run; without it, about a quarter of a second for each",
       .on_devices = true});
  std::string size = "1M", file;
  bool no_verify = false;
  command.app()
      .add_option("--size", size, "complex elements, a power of two, like 1024, 64K or 128M, or several: 64K,1M")
      ->type_name("COUNT,..")
      ->capture_default_str();
  command.app().add_option("--write", file, "file for the last result: complex64, in the order of frequencies");
  command.app().add_flag("--no-verify", no_verify, "do not compare with the serial reference");
  return command.run(argc, argv, methods(), [&](beeline::Config& config, const std::vector<MethodInfo>& chosen) {
    const Options options{parse_counts(size), chosen, command.repeats(), !no_verify, file};
    check(apps::devices_for(config), options.counts, options.verify);
    return apps::CommandLine::MeasureOnDevices(
        [options](const apps::Devices& devices) { return measure(devices, options); });
  });
}
