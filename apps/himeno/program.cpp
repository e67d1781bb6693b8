// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "beeline/core/error.hpp"
#include "beeline/host/run.hpp"
#include "environment/environment.hpp"
#include "measure.hpp"
#include "room.hpp"

namespace himeno {

namespace {

using Json = nlohmann::ordered_json;

/// Why ranks that this process's GPUs are all they see would run on CPUs; empty: they would not.
std::string why_no_gpu(const beeline::Config& config) {
  if (config.device == "cpu") return "needs a GPU for each rank, and these ranks run on CPUs (device cpu)";
  std::string why_none;
  const std::vector<beeline::Device> gpus = beeline::visible_gpus(&why_none);
  if (gpus.empty()) return "needs a GPU for each rank: " + why_none;
  if (config.threads || config.device != "auto" || static_cast<std::size_t>(config.size) <= gpus.size() ||
      beeline::mps_runs())
    return "";
  return "needs a GPU for each rank, and ranks that are processes share none: with " + std::to_string(gpus.size()) +
         " of them these run on CPUs; run them as threads";
}

void list_methods(const std::vector<MethodInfo>& methods) {
  const beeline::Config config = beeline::Config::from_environment();
  if (config.rank != 0) return;
  for (const MethodInfo& info : methods) {
    const std::string reason = info.needs_gpu ? why_no_gpu(config) : "";
    const Json line{{"event", "method"},
                    {"name", info.name},
                    {"summary", info.summary},
                    {"available", reason.empty()},
                    {"reason", reason.empty() ? Json() : Json(reason)}};
    std::puts(line.dump().c_str());
  }
}

std::vector<MethodInfo> parse_methods(const std::string& text, const std::vector<MethodInfo>& methods) {
  if (text == "all") return methods;
  std::vector<MethodInfo> chosen;
  std::istringstream list(text);
  for (std::string name; std::getline(list, name, ',');) chosen.push_back(find_method(methods, name));
  beeline::require(!chosen.empty(), beeline::Status::invalid_argument, "--method names no method");
  return chosen;
}

/// Whether rank 0 speaks for this process. False where the environment says nothing about ranks that makes sense.
bool is_quiet_rank() {
  try {
    return beeline::Config::from_environment().rank != 0;
  } catch (const beeline::Error&) {
    return false;
  }
}

/// Collective. The first line of the record.
void print_environment(beeline::World& world, const std::vector<std::string>& arguments) {
  const Json line = beeline::bench::environment_record(world, arguments);
  if (world.rank() != 0) return;
  std::puts(line.dump().c_str());
  std::fflush(stdout);
}

int run(const Options& options, const std::vector<std::string>& arguments) {
  beeline::Config config = beeline::Config::from_environment();
  const Machine machine = machine_for(config.device);
  for (const MethodInfo& info : options.methods)
    beeline::require(!info.needs_gpu || !machine.gpus.empty(), beeline::Status::unavailable,
                     info.name + " " + why_no_gpu(config));
  fit(config, options.size, options.verify, machine);
  std::atomic<bool> good{true};
  const int code = beeline::run(config, [&](beeline::World& world) {
    beeline::require(!world.mixed(), beeline::Status::unavailable,
                     "ranks store into their neighbours' arrays: either all have GPUs or none has");
    print_environment(world, arguments);
    if (!measure(world, options)) good = false;
  });
  if (!good) std::fputs("himeno: a method's result is wrong: see \"verified\"\n", stderr);
  return code != 0 ? code : good ? 0 : 1;
}

}  // namespace

int run_program(int argc, char** argv, const std::vector<MethodInfo>& methods) {
  CLI::App app{
      "The Himeno benchmark: 19-point Jacobi relaxation of the 3-D Poisson equation, by several methods of "
      "communication"};
  std::string size = "S", method = "all";
  Options options;
  bool list = false, no_verify = false;
  app.add_option("--size", size, "XS, S, M, L, XL or XxYxZ points (the official i, j, k)")->capture_default_str();
  app.add_option("--method", method, "names, separated by commas, or all")->capture_default_str();
  app.add_option("--iterations", options.iterations, "of each timed run; without it, about a second for each method")
      ->check(CLI::Range(1, 1'000'000'000));
  app.add_flag("--no-verify", no_verify, "do not compare with the serial reference");
  app.add_flag("--list", list, "list the methods and end");
  CLI11_PARSE(app, argc, argv);
  try {
    if (list) {
      list_methods(methods);
      return 0;
    }
    options.size = parse_size(size);
    options.methods = parse_methods(method, methods);
    options.verify = !no_verify;
    return run(options, {argv, argv + argc});
  } catch (const beeline::Error& error) {
    // Before there is a world every rank finds the same, and one of them says it.
    if (is_quiet_rank()) return 0;
    std::fprintf(stderr, "himeno: %s\n", error.what());
    return 2;
  }
}

}  // namespace himeno
