// SPDX-License-Identifier: Apache-2.0
/// @file
/// beeline-bench: latency and bandwidth of every method, beside bare peers, as JSON lines.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <sstream>

#include "beeline/host/run.hpp"
#include "cases/cases.hpp"
#include "environment/environment.hpp"
#include "harness/record.hpp"
#include "harness/runner.hpp"

namespace {

using namespace beeline;
using namespace beeline::bench;

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
  std::string operations = "all", methods = "all", sizes;
};

void add_options(CLI::App& command, Options& options, Texts& texts, bool bandwidth) {
  command.footer(
      fmt::format("Methods:\n  {}", fmt::join(methods_of(bandwidth ? Command::bandwidth : Command::latency), "\n  ")));
  command.add_option("--methods", texts.methods, "Methods, by identifier, with commas between them")
      ->capture_default_str();
  command
      .add_option("--operations", texts.operations,
                  bandwidth ? "put, get, with commas between them" : "message, flag, barrier, with commas between them")
      ->capture_default_str();
  command.add_option("--sizes", texts.sizes,
                     bandwidth
                         ? "Message sizes, like 64K,512M (default: 64K, doubling, to 512M on GPUs and 64M on CPUs)"
                         : "Message sizes, like 8,4K,1M (default: 8,64,512,4K,32K,256K,1M)");
  command.add_option("--iterations", options.iterations, "Operations in a timed batch (default: about 2 ms worth)")
      ->check(CLI::Range(std::uint64_t{1}, most_iterations));
  command
      .add_option("--threads-per-block", options.threads_per_block,
                  "Threads of a GPU's block: 1 is a thread, 32 are a warp (default: by size)")
      ->check(CLI::Range(1, 1024));
  if (bandwidth)
    command.add_option("--blocks", options.blocks, "Blocks of a GPU's grid (default: a sweep)")
        ->check(CLI::Range(1, 4096));
  command.add_option("--seed", options.seed, "Seed of the data that is verified (default: drawn, and printed)");
  command.add_flag("!--no-verify", options.verify, "Skip the transfer of fresh data after each timed loop");
}

void interpret(Options& options, const Texts& texts) {
  if (texts.operations != "all") options.operations = split(texts.operations);
  if (texts.methods != "all") options.methods = split(texts.methods);
  for (const std::string& size : split(texts.sizes)) options.sizes.push_back(parse_size(size));
  static_cast<void>(cases_of(options));
}

void measure(World& world, const Options& options) {
  Session session(world, options);
  const nlohmann::ordered_json environment = environment_record(world, options.arguments);
  if (session.leads()) print(environment);
  run_cases(session, cases_of(options));
}

/// Fails on every rank alike, and says why on the first.
int refuse(const Config& config, const std::string& reason) {
  if (config.rank == 0) fmt::print(stderr, "beeline-bench: {}\n", reason);
  return usage_error;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Measures Beeline's methods between ranks 0 and 1 (barriers: among all ranks), beside bare peers in the same "
      "run.\n"
      "Start it on two ranks or more: beeline run -n 2 beeline-bench latency\n"
      "Prints JSON lines: one environment record, then progress and results. Times are one way, in microseconds;\n"
      "bandwidths are in GB/s (10^9). Exit status 1 when data arrived wrong.",
      "beeline-bench");
  Options options;
  Texts texts;
  options.arguments.assign(argv, argv + argc);
  app.require_subcommand(1);
  CLI::App* latency = app.add_subcommand("latency", "Messages, signals and barriers: time one way");
  CLI::App* bandwidth = app.add_subcommand("bandwidth", "Messages one way, several in flight: bytes per second");
  add_options(*latency, options, texts, false);
  add_options(*bandwidth, options, texts, true);
  Config config;
  try {
    config = Config::from_environment();
    app.parse(argc, argv);
    options.command = bandwidth->parsed() ? Command::bandwidth : Command::latency;
    interpret(options, texts);
  } catch (const CLI::ParseError& error) {
    if (config.rank != 0) return error.get_exit_code() == 0 ? 0 : usage_error;
    return app.exit(error) == 0 ? 0 : usage_error;
  } catch (const Error& error) {
    return refuse(config, error.what());
  }
  if (config.size < 2)
    return refuse(
        config, "needs two ranks or more: beeline run -n 2 beeline-bench " + app.get_subcommands().front()->get_name());
  if (config.heap_bytes == 0) config.heap_bytes = heap_bytes_for(options, config.size);
  return run(config, [&](World& world) { measure(world, options); });
}
