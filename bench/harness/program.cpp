// SPDX-License-Identifier: Apache-2.0
#include "harness/program.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <deque>

#include "beeline/host/run.hpp"
#include "environment/environment.hpp"
#include "environment/load_meter.hpp"
#include "harness/case_choice.hpp"
#include "harness/record.hpp"
#include "harness/runner.hpp"
#include "harness/subcommand.hpp"

namespace beeline::bench {

namespace {

using Json = nlohmann::ordered_json;
constexpr int usage_error = 2;

Json document(const std::vector<Json>& commands) { return {{"program", "beeline-bench"}, {"commands", commands}}; }

Json description(const Program& program, const std::deque<Subcommand>& subcommands) {
  std::vector<Json> commands;
  for (const Subcommand& one : subcommands) {
    commands.push_back(one.description());
    if (one.is_empty() && program.without_cases != nullptr) commands.back()["reason"] = program.without_cases;
  }
  if (program.commands_elsewhere != nullptr)
    for (const Json& one : program.commands_elsewhere()) commands.push_back(one);
  return document(commands);
}

void print_environment(World& world, const Options& options) {
  const Json environment = environment_record(world, options.arguments);
  if (world.rank() == 0) print(environment);
}

/// Each rank makes its own cases, because cases have state of their rank, which may be a thread among others.
void measure(World& world, const Program& program, const Options& options) {
  Bench bench(world, options);
  print_environment(world, options);
  std::vector<Case> cases = chosen(program.cases_of(options.command), options);
  std::erase_if(cases, [](const Case& one) { return !one.prepare; });
  run_cases(bench, cases);
  program.stop_peers();
}

/// Refuses on every rank; the first rank prints the reason.
int refuse(const Config& config, const std::string& reason) {
  if (config.rank == 0) fmt::print(stderr, "beeline-bench: {}\n", reason);
  return usage_error;
}

}  // namespace

int run_program(const Program& program, int argc, char** argv) {
  CLI::App app(program.summary, "beeline-bench");
  std::deque<Subcommand> subcommands;
  app.require_subcommand(1);
  for (const Measuring& one : program.commands) subcommands.emplace_back(app, one, program.cases_of(one.command));
  // As a version flag, this is printed whatever else the command line contains or lacks.
  app.set_version_flag(
      "--describe", [&] { return description(program, subcommands).dump(); }, "Print all commands as JSON");
  Config config;
  const Subcommand* asked = nullptr;
  Options options;
  try {
    config = Config::from_environment();
    app.parse(argc, argv);
    asked = &*std::find_if(subcommands.begin(), subcommands.end(), [](const auto& one) { return one.is_asked(); });
    options = asked->options();
    if (options.energy_ms > 0) check_window(static_cast<std::int64_t>(options.energy_ms) * 1'000'000, config);
  } catch (const CLI::ParseError& error) {
    if (config.rank != 0) return error.get_exit_code() == 0 ? 0 : usage_error;
    return app.exit(error) == 0 ? 0 : usage_error;
  } catch (const Error& error) {
    return refuse(config, error.what());
  }
  options.arguments.assign(argv, argv + argc);
  if (asked->is_to_describe()) return print(document({asked->description()})), 0;
  if (asked->is_empty() && program.without_cases != nullptr) return refuse(config, program.without_cases);
  if (asked->measuring().in_python) return run(config, [&](World& world) { print_environment(world, options); });
  if (config.size < 2)
    return refuse(config,
                  fmt::format("needs two ranks or more: beeline run -n 2 beeline-bench {}", name(options.command)));
  const bool on_gpus = config.device != "cpu" && !visible_gpus().empty();
  if (config.heap_bytes == 0) config.heap_bytes = heap_bytes_for(options, config.size, on_gpus);
  // MPI messages are staged as a whole in the pinned heap.
  if (config.launcher.name == "mpirun" && !options.sizes.empty())
    config.pinned_heap_bytes += *std::max_element(options.sizes.begin(), options.sizes.end());
  // GPU ranks also have messages between nodes in host memory.
  if (options.command == Command::network && on_gpus)
    config.pinned_heap_bytes += heap_bytes_for(options, config.size, on_gpus);
  return run(config, [&](World& world) { measure(world, program, options); });
}

}  // namespace beeline::bench
