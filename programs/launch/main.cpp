// SPDX-License-Identifier: Apache-2.0
/// @file
/// beeline-launch: starts the ranks of a world and ends them together.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/core/layout.hpp"
#include "beeline/runtime/device.hpp"
#include "core/setting.hpp"
#include "guardian.hpp"
#include "job.hpp"
#include "process.hpp"
#include "runtime/tls/session.hpp"

namespace {

constexpr int usage_error = 2;

/// Refuses a setting once, here, that otherwise each rank would refuse.
void read_settings(beeline::launcher::Options& options) {
  try {
    beeline::detail::read_environment(options.environment, false);
  } catch (const beeline::Error& error) {
    throw CLI::ValidationError(error.what());
  }
}

void check_devices(const beeline::launcher::Options& options) {
  try {
    static_cast<void>(beeline::devices_of_ranks(options.device.value_or(options.environment.device), options.ranks));
  } catch (const beeline::Error& error) {
    throw CLI::ValidationError(options.device ? "--device" : "BEELINE_DEVICE", error.what());
  }
}

void check_hosts(const beeline::launcher::Options& options) {
  for (const std::string& host : options.hosts)
    if (host.find_first_not_of(' ') == std::string::npos || host.front() == '-')
      throw CLI::ValidationError("--hosts", "'" + host + "' is no host");
  if (!options.hosts.empty() && options.standard_input.value_or("none") != "none")
    throw CLI::ValidationError("--stdin", "ranks that --hosts starts get no standard input");
  if (options.hosts.size() > static_cast<std::size_t>(options.ranks))
    throw CLI::ValidationError(
        "--hosts", fmt::format("{} hosts for {} ranks: each has one at least", options.hosts.size(), options.ranks));
}

void check_security(beeline::launcher::Options& options) {
  options.secure = options.secure || options.environment.secure;
  if (options.secure)
    if (const std::string reason = beeline::detail::tls_reason(); !reason.empty())
      throw CLI::ValidationError("--secure", reason);
  if (!options.hosts.empty() && !options.secure && !options.trusted_network)
    throw CLI::ValidationError(
        "--hosts",
        "whoever can reach the ranks' network ports could write to their memory: --secure encrypts the connections, "
        "--trusted-network says that the network is private (docs/security.md)");
}

/// Ranks go to hosts, and to parts of a machine, in blocks of consecutive ranks.
void check_nodes(const beeline::launcher::Options& options) {
  const int split_nodes = options.split_nodes.value_or(options.environment.split_nodes);
  if (split_nodes > options.ranks)
    throw CLI::ValidationError(options.split_nodes ? "--split-nodes" : "BEELINE_SPLIT_NODES",
                               fmt::format("{} nodes for {} ranks: each has one at least", split_nodes, options.ranks));
  const auto hosts = std::max<int>(1, static_cast<int>(options.hosts.size()));
  const int nodes = std::max(hosts, split_nodes);
  const int most = (options.ranks + nodes - 1) / nodes, limit = beeline::max_node_ranks;
  if (most > limit)
    throw CLI::ValidationError("--ranks", fmt::format("{} ranks on a node, which has {} at most: --split-nodes makes "
                                                      "several of this machine, beeline run --hosts uses several",
                                                      most, limit));
}

/// The reason why a text is no number of seconds, or an empty one: CLI::Range lets NaN pass.
std::string refuse_nan(const std::string& text) {
  double value = 0;
  return CLI::detail::lexical_cast(text, value) && std::isnan(value) ? text + " is no number" : std::string();
}

/// Options of the world. Returns the one that the options of hosts exclude.
CLI::Option* add_world_options(CLI::App& app, beeline::launcher::Options& options) {
  app.add_option("-n,--ranks", options.ranks, "Ranks in the world")
      ->required()
      ->check(CLI::Range(1, static_cast<int>(beeline::max_ranks)));
  CLI::Option* const threads =
      app.add_flag("--threads", options.threads, "Ranks are threads of one process: of C++ programs that call run");
  app.add_flag("--keep-going", options.keep_going,
               "A rank that fails does not end the job: the others go on without it")
      ->excludes(threads);
  app.add_option("--device", options.device,
                 "auto, cpu, cuda:ID[,ID...] (ID: index or UUID), or an entry for each rank: cuda:0,cuda:1,cpu,cpu; "
                 "without it, BEELINE_DEVICE, or auto");
  app.add_option("--deadline", options.deadline_s,
                 "Seconds after which a wait fails; without it, BEELINE_DEADLINE_S, or 30")
      ->check(CLI::Range(1e-3, 1e6))
      ->check(refuse_nan);
  app.add_flag("--check", options.check,
               "Warn of signals whose word already has their value: a wait cannot tell them from those before");
  app.add_option("--split-nodes", options.split_nodes,
                 "Nodes that this machine counts as, by blocks of ranks; between nodes data goes over UCX; without it, "
                 "BEELINE_SPLIT_NODES, or 1")
      ->check(CLI::Range(1, static_cast<int>(beeline::max_ranks)));
  return threads;
}

/// Splits a text at its commas, which may leave empty names.
std::vector<std::string> names_in(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    names.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

/// Options of the ranks' places and connections.
void add_host_options(CLI::App& app, beeline::launcher::Options& options, CLI::Option* threads) {
  app.add_option("--bind", options.bind,
                 "host[:port] where ranks meet; 127.0.0.1, or this machine's address that the hosts reach");
  // CLI11's own lists pass over empty names, and take the next option's where all are.
  CLI::Option* const hosts = app.add_option_function<std::string>(
      "--hosts", [&options](const std::string& text) { options.hosts = names_in(text); },
      "Hosts that ssh starts the ranks on, by blocks: a,b");
  hosts->excludes(threads);
  app.add_option("--ssh", options.ssh, "What starts a command on a host, in place of ssh")
      ->needs(hosts)
      ->check([](const std::string& text) {
        return text.find_first_not_of(' ') == std::string::npos ? "no command" : std::string();
      });
  app.add_flag("--secure", options.secure,
               "Encrypt the ranks' connections (TLS 1.3), for which they need the world's token");
  app.add_flag("--trusted-network", options.trusted_network,
               "With --hosts, without --secure: only hosts and users that may write to the ranks' memory reach them")
      ->needs(hosts);
}

/// Options of the ranks' input, output and end.
void add_job_options(CLI::App& app, beeline::launcher::Options& options) {
  app.add_option("--stdin", options.standard_input,
                 "Which ranks get standard input: none, 0 or all, of which each gets all of it; without it, 0, or none "
                 "with --hosts")
      ->check(CLI::IsMember({"none", "0", "all"}));
  app.add_option("--grace", options.grace_s,
                 "Seconds after SIGTERM, which ranks get, in which they go on together, to save their state")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6))
      ->check(refuse_nan);
  app.add_flag("--no-prefix", options.no_prefix, "Print the ranks' lines without \"[rank] \"");
  app.add_flag("--json", options.json, "Standard output: the ranks' JSON lines only; all else goes to standard error");
}

}  // namespace

int main(int argument_count, char** arguments) {
  beeline::launcher::open_standard_descriptors();
  beeline::launcher::reset_signals();
  beeline::launcher::Options options;
  CLI::App app(
      "beeline-launch -n N [OPTIONS] -- PROGRAM [ARGUMENTS...]\n"
      "Starts PROGRAM as the ranks of a Beeline world, and ends all of them when one fails.",
      "beeline-launch");
  add_host_options(app, options, add_world_options(app, options));
  add_job_options(app, options);
  app.prefix_command();
  try {
    app.parse(argument_count, arguments);
    options.command = app.remaining();
    if (!options.command.empty() && options.command.front() == "--") options.command.erase(options.command.begin());
    read_settings(options);
    check_devices(options);
    check_hosts(options);
    check_security(options);
    check_nodes(options);
    if (options.command.empty()) throw CLI::RequiredError("PROGRAM");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : usage_error;
  }
  const auto run = [&options](int guardian) {
    try {
      return beeline::launcher::run(options, guardian);
    } catch (const std::exception& error) {
      fmt::print(stderr, "beeline-launch: {}\n", error.what());
      return usage_error;
    }
  };
  try {
    return beeline::launcher::run_guarded(run);
  } catch (const beeline::Error& error) {
    fmt::print(stderr, "beeline-launch: {}\n", error.what());
    return usage_error;
  }
}
