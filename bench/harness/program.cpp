// SPDX-License-Identifier: Apache-2.0
#include "harness/program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <sstream>

#include "beeline/host/run.hpp"
#include "environment/environment.hpp"
#include "harness/case_choice.hpp"
#include "harness/record.hpp"
#include "harness/runner.hpp"

namespace beeline::bench {

namespace {

constexpr int usage_error = 2;
constexpr std::uint64_t most_iterations = 1'000'000'000;

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream text(list);
  for (std::string part; std::getline(text, part, ',');) parts.push_back(part);
  return parts;
}

/// What the command line holds before it is checked.
struct Texts {
  std::string operations, methods = "all", sizes, table, blocks, type = "float32";
};

void add_options(CLI::App& app, const Measuring& measuring, const std::vector<Case>& cases, Options& options,
                 Texts& texts) {
  const Command command = measuring.command;
  texts.operations = measuring.operations;
  app.footer(fmt::format("Methods:\n  {}", fmt::join(names_of(cases, &Case::method), "\n  ")));
  app.add_option("--methods", texts.methods, "Methods, by identifier, with commas between them")->capture_default_str();
  app.add_option(
         "--operations", texts.operations,
         fmt::format("{}, with commas between them, or all", fmt::join(names_of(cases, &Case::operation), ", ")))
      ->capture_default_str();
  if (measuring.sizes != nullptr) app.add_option("--sizes", texts.sizes, measuring.sizes);
  app.add_option("--iterations", options.iterations, "Operations in a timed batch (default: about 2 ms worth)")
      ->check(CLI::Range(std::uint64_t{1}, most_iterations));
  if (command == Command::latency || command == Command::bandwidth)
    app.add_option("--threads-per-block", options.threads_per_block,
                   "Threads of a GPU's block: 1 is a thread, 32 are a warp (default: by size)")
        ->check(CLI::Range(1, 1024));
  if (command == Command::bandwidth)
    app.add_option("--blocks", options.blocks, "Blocks of a GPU's grid (default: a sweep)")->check(CLI::Range(1, 4096));
  if (command == Command::rate)
    app.add_option("--table", texts.table,
                   "Bytes of a rank's table of random updates, a power of two (default: 512M on GPUs, 16M on CPUs)");
  if (command == Command::collectives) {
    app.add_option("--type", texts.type, "Type of the elements")
        ->check(CLI::IsMember({"float32", "bfloat16"}))
        ->capture_default_str();
    app.add_option("--blocks", texts.blocks, "Blocks of a call, like 1,2,4,8: each is measured (default: by size)");
  }
  app.add_option("--seed", options.seed, "Seed of the data that is verified (default: drawn, and printed)");
  app.add_flag("!--no-verify", options.verify, "Skip the transfer of fresh data after each timed loop");
}

/// The subcommand for measurements that are other programs: prints what their ranks run on, with their arguments.
CLI::App& add_environment(CLI::App& app) {
  CLI::App& environment = *app.add_subcommand("environment", "The environment record alone, with these arguments");
  environment.prefix_command();
  return environment;
}

unsigned parse_blocks(const std::string& text) {
  const std::uint64_t blocks = parse_size(text);
  require(blocks <= 1024, Status::invalid_argument, fmt::format("bad number of blocks {}; valid: 1 to 1024", blocks));
  return static_cast<unsigned>(blocks);
}

void interpret(Options& options, const Texts& texts) {
  if (texts.operations != "all") options.operations = split(texts.operations);
  if (texts.methods != "all") options.methods = split(texts.methods);
  for (const std::string& size : split(texts.sizes)) options.sizes.push_back(parse_size(size));
  if (!texts.table.empty()) options.table_bytes = parse_size(texts.table);
  for (const std::string& blocks : split(texts.blocks)) options.block_counts.push_back(parse_blocks(blocks));
  if (texts.type == name(ElementType::bfloat16)) options.type = ElementType::bfloat16;
  check_sizes(options);
}

/// Cases have state of their rank, which may be a thread beside others.
void measure(World& world, const Program& program, const Options& options) {
  Session session(world, options);
  const nlohmann::ordered_json environment = environment_record(world, options.arguments);
  if (session.leads()) print(environment);
  run_cases(session, chosen(program.cases_of(options.command), options));
  program.stop_peers();
}

void describe(World& world, const std::vector<std::string>& arguments) {
  const nlohmann::ordered_json environment = environment_record(world, arguments);
  if (world.rank() == 0) print(environment);
}

/// Fails on every rank alike, and says why on the first.
int refuse(const Config& config, const std::string& reason) {
  if (config.rank == 0) fmt::print(stderr, "beeline-bench: {}\n", reason);
  return usage_error;
}

}  // namespace

int run_program(const Program& program, int argc, char** argv) {
  CLI::App app(program.description, "beeline-bench");
  Options options;
  std::vector<Texts> texts(program.commands.size());
  options.arguments.assign(argv, argv + argc);
  app.require_subcommand(1);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Measuring& measuring = program.commands[i];
    add_options(*app.add_subcommand(measuring.name, measuring.summary), measuring, program.cases_of(measuring.command),
                options, texts[i]);
  }
  const CLI::App& environment = add_environment(app);
  Config config;
  try {
    config = Config::from_environment();
    app.parse(argc, argv);
    for (std::size_t i = 0; i < texts.size(); ++i)
      if (app.got_subcommand(program.commands[i].name)) {
        options.command = program.commands[i].command;
        interpret(options, texts[i]);
        static_cast<void>(chosen(program.cases_of(options.command), options));
      }
  } catch (const CLI::ParseError& error) {
    if (config.rank != 0) return error.get_exit_code() == 0 ? 0 : usage_error;
    return app.exit(error) == 0 ? 0 : usage_error;
  } catch (const Error& error) {
    return refuse(config, error.what());
  }
  if (environment) return run(config, [&](World& world) { describe(world, environment.remaining()); });
  if (config.size < 2)
    return refuse(
        config, "needs two ranks or more: beeline run -n 2 beeline-bench " + app.get_subcommands().front()->get_name());
  if (config.heap_bytes == 0)
    config.heap_bytes = heap_bytes_for(options, config.size, config.device != "cpu" && !visible_gpus().empty());
  return run(config, [&](World& world) { measure(world, program, options); });
}

}  // namespace beeline::bench
