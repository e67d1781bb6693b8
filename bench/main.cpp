// SPDX-License-Identifier: Apache-2.0
/// @file
/// beeline-bench: latency and bandwidth of every method, compared with bare peers, as JSON lines.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "cases/cases.hpp"
#include "harness/program.hpp"
#include "peers/mpi/mpi.hpp"
#include "peers/nvshmem/nvshmem.hpp"

namespace {

using namespace beeline::bench;
using Json = nlohmann::ordered_json;
using Type = CommandOption::Type;

std::vector<Measuring> commands() {
  const CommandOption threads = integer_option(
      "threads-per-block", "Threads of a GPU's block: 1 is a thread, 32 are a warp (default: by size)", 1, 1024);
  const CommandOption window{"window", Type::integer, "Milliseconds of load that are metered at a time", "2000", {},
                             100,      60'000};
  return {
      {Command::latency,
       "Messages, signals and barriers: time one way, from the start of a send to its receipt",
       {{"sizes", Type::sizes, "Message sizes, like 8,4K,1M", "8,64,512,4K,32K,256K,1M"}, threads}},
      {Command::bandwidth,
       "Messages one way, several in flight: bytes per second",
       {{"sizes", Type::sizes, "Message sizes (default: 64K, doubling, to 512M on GPUs and 64M on CPUs)"},
        threads,
        integer_option("blocks", "Blocks of a GPU's grid (default: a sweep)", 1, 4096)}},
      {Command::rate,
       "Messages of many senders, atomics, and random updates of all ranks' memory",
       {{"sizes", Type::sizes, "Message sizes", "8,64,512", {}, 1, 4 << 10},
        {"table",
         Type::size,
         "A rank's table of random updates, a power of two (default: 512M on GPUs, 16M on CPUs)",
         "",
         {},
         8}}},
      {Command::methods,
       "Every method: the time of a small message, messages a second, bytes a second of large ones, one way and two; "
       "of commands to engines also their rates, their times under load, and the engine's CPU time",
       {{"sizes", Type::sizes,
         "Message sizes: below 64K for times, 8 for rates, from 64K on for bandwidths, from 256K on two-way",
         "8,4K,16K,32K,256K,16M"}}},
      {.command = Command::energy,
       .summary = "Joules per word of the methods and collectives, in a set of runs that a later one continues",
       .options =
           {{"set",
             Type::name,
             "default: a few of each; full: every size; collectives: beside NCCL's; applications: Jacobi, reductions, "
             "random updates; himeno: Himeno by method; poll-period: how the host waits; table-002: direct against "
             "staged, under mpirun",
             "default",
             {"default", "full", "collectives", "applications", "himeno", "poll-period", "table-002"}},
            window,
            integer_option("budget", "Seconds for the whole set (default: the set's own, 240 to 1,800)", 10, 100'000)},
       .in_python = true},
      {.command = Command::launch,
       .summary =
           "Host time, energy and power of Himeno on one rank, launched kernel by kernel, by graph and by the GPU",
       .options = {{"iterations",
                    Type::integers,
                    "Iterations of a run: each is measured",
                    "100,250,500,1000,2000",
                    {},
                    1,
                    1'000'000'000},
                   {"size",
                    Type::name,
                    "Grid of the application himeno (default: 512x512x256 on GPUs, XS on CPUs)",
                    "",
                    {"512x512x256", "XS", "S", "M", "L", "XL"}},
                   window,
                   {"no-verify", Type::flag, "Skip the comparison with the serial reference"}},
       .in_python = true},
      {Command::network,
       "Messages between nodes, beside bare UCX over the same network: time one way, bandwidth and rate by the window "
       "of requests in flight, time of a call, of triggers, tasks and barriers, cost of finding memory among many "
       "segments",
       {{"sizes", Type::sizes,
         "Message sizes: up to 256K for times of calls, up to 4K for rates, from 64K on for bandwidths",
         "8,64,512,4K,32K,256K,1M,4M"}}},
      {Command::adapters,
       "Requests in the formats of network adapters, in four placements of their rings and posters, beside command "
       "queues: time one way, bandwidth, and what a post and a poll cost",
       {{"sizes", Type::sizes, "Message sizes: up to 256K for times, from 4K on for bandwidths", "8,512,4K,64K,1M"}}},
      {Command::address_space, "Loads from the peer's memory and stores to it, against threads and strides", {}},
  };
}

constexpr const char* summary =
    "Measures Beeline's methods between ranks 0 and 1 (barriers and random updates: among all), beside bare peers\n"
    "in the same run.\n"
    "Start it on two ranks or more: beeline run -n 2 beeline-bench latency\n"
    "Collectives are measured by a program beside this one: beeline run -n 2 beeline-bench collectives\n"
    "Prints JSON lines: one environment record, then progress and results. Times are one way, in microseconds;\n"
    "bandwidths are in GB/s (10^9), rates in Mmsg/s (10^6) and Gupdate/s (10^9).\n"
    "Exit status 1 when data arrived wrong.";

// Collectives have their own program, because the library's kernels for them take long to compile.

constexpr Command elsewhere[] = {Command::collectives, Command::accuracy, Command::overlap, Command::calls};

std::filesystem::path collectives_program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / BEELINE_COLLECTIVES_PROGRAM;
}

/// That program's description of its commands; if it is missing, a reason for each command.
Json collectives_commands() {
  const std::string program = collectives_program().string();
  Json commands = Json::array();
  if (access(program.c_str(), X_OK) != 0) {
    const std::string reason = program + " is not there; tools/build builds it";
    for (Command one : elsewhere)
      commands.push_back({{"name", name(one)}, {"summary", "Not built"}, {"reason", reason}});
    return commands;
  }
  const std::string command = fmt::format("'{}' --describe", program);
  const std::unique_ptr<FILE, int (*)(FILE*)> output(popen(command.c_str(), "r"), pclose);
  const Json document = output == nullptr ? Json() : Json::parse(output.get(), nullptr, false);
  beeline::require(document.is_object(), beeline::Status::internal, "no description from " + command);
  return document.at("commands");
}

void stop_peers() {
  nvshmem::stop();
  mpi::stop();
}

int become_collectives(char** argv) {
  const std::filesystem::path program = collectives_program();
  execv(program.c_str(), argv);
  fmt::print(stderr, "beeline-bench: cannot start {}: {}; tools/build builds it\n", program.string(),
             std::generic_category().message(errno));
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto is_first = [&](Command one) { return argc > 1 && std::string_view(argv[1]) == name(one); };
  if (std::any_of(std::begin(elsewhere), std::end(elsewhere), is_first)) return become_collectives(argv);
  const char* const reason =
      BEELINE_DEMO ? "this program has the cases of tools/demo alone: tools/build builds the rest" : nullptr;
  return run_program({summary, commands(), primitive_cases, stop_peers, collectives_commands, reason}, argc, argv);
}
