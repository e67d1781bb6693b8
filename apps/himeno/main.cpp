// SPDX-License-Identifier: Apache-2.0
/// @file
/// himeno: the Himeno benchmark with a choice of communication methods. Prints JSON lines from rank 0.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/host/run.hpp"
#include "environment/environment.hpp"
#include "measure.hpp"
#include "method.hpp"
#include "room.hpp"

namespace {

void list_methods() {
  if (beeline::Config::from_environment().rank != 0) return;
  for (const himeno::MethodInfo& info : himeno::methods()) {
    const nlohmann::ordered_json line{
        {"event", "method"}, {"name", info.name}, {"summary", info.summary}, {"available", true}, {"reason", nullptr}};
    std::puts(line.dump().c_str());
  }
}

std::vector<std::string> parse_methods(const std::string& text) {
  std::vector<std::string> names;
  if (text == "all") {
    for (const himeno::MethodInfo& info : himeno::methods()) names.push_back(info.name);
    return names;
  }
  std::istringstream list(text);
  for (std::string name; std::getline(list, name, ',');) names.push_back(himeno::find_method(name).name);
  beeline::require(!names.empty(), beeline::Status::invalid_argument, "--method names no method");
  return names;
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
  const nlohmann::ordered_json line = beeline::bench::environment_record(world, arguments);
  if (world.rank() != 0) return;
  std::puts(line.dump().c_str());
  std::fflush(stdout);
}

int run(const himeno::Options& options, const std::vector<std::string>& arguments) {
  beeline::Config config = beeline::Config::from_environment();
  himeno::fit(config, options.size, options.verify, himeno::machine_for(config.device));
  std::atomic<bool> good{true};
  const int code = beeline::run(config, [&](beeline::World& world) {
    print_environment(world, arguments);
    if (!himeno::measure(world, options)) good = false;
  });
  if (!good) std::fputs("himeno: a method's result is wrong: see \"verified\"\n", stderr);
  return code != 0 ? code : good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "The Himeno benchmark: 19-point Jacobi relaxation of the 3-D Poisson equation, by several methods of "
      "communication"};
  std::string size = "S", method = "all";
  himeno::Options options;
  bool list = false, no_verify = false;
  app.add_option("--size", size, "XS, S, M, L, XL or XxYxZ points")->capture_default_str();
  app.add_option("--method", method, "names, separated by commas, or all")->capture_default_str();
  app.add_option("--iterations", options.iterations, "of each timed run; without it, about a second for each method")
      ->check(CLI::Range(1, 1'000'000'000));
  app.add_flag("--no-verify", no_verify, "do not compare with the serial reference");
  app.add_flag("--list", list, "list the methods and end");
  CLI11_PARSE(app, argc, argv);
  try {
    if (list) {
      list_methods();
      return 0;
    }
    options.size = himeno::parse_size(size);
    options.methods = parse_methods(method);
    options.verify = !no_verify;
    return run(options, {argv, argv + argc});
  } catch (const beeline::Error& error) {
    // Before there is a world every rank finds the same, and one of them says it.
    if (is_quiet_rank()) return 0;
    std::fprintf(stderr, "himeno: %s\n", error.what());
    return 2;
  }
}
