// SPDX-License-Identifier: Apache-2.0
/// @file
/// beeline-bench: latency and bandwidth of every method, beside bare peers, as JSON lines.

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "cases/cases.hpp"
#include "harness/program.hpp"
#include "peers/nvshmem/nvshmem.hpp"

namespace {

using namespace beeline::bench;

constexpr Measuring commands[] = {
    {Command::latency, "latency", "Messages, signals and barriers: time one way",
     "Message sizes, like 8,4K,1M (default: 8,64,512,4K,32K,256K,1M)"},
    {Command::bandwidth, "bandwidth", "Messages one way, several in flight: bytes per second",
     "Message sizes, like 64K,512M (default: 64K, doubling, to 512M on GPUs and 64M on CPUs)"},
    {Command::rate, "rate", "Messages of many senders, atomics, and random updates of all ranks' memory",
     "Message sizes, up to 4K (default: 8,64,512)"},
    {Command::address_space, "address-space",
     "Loads from the peer's memory and stores to it, against threads and strides", nullptr},
};

constexpr const char* description =
    "Measures Beeline's methods between ranks 0 and 1 (barriers and random updates: among all), beside bare peers\n"
    "in the same run.\n"
    "Start it on two ranks or more: beeline run -n 2 beeline-bench latency\n"
    "Collectives are measured by a program beside this one: beeline run -n 2 beeline-bench collectives\n"
    "Prints JSON lines: one environment record, then progress and results. Times are one way, in microseconds;\n"
    "bandwidths are in GB/s (10^9), rates in Mmsg/s (10^6) and Gupdate/s (10^9).\n"
    "Exit status 1 when data arrived wrong.";

/// Their program is one of its own, because the library's kernels for collectives take long to compile.
int become_collectives(char** argv) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / BEELINE_COLLECTIVES_PROGRAM;
  execv(program.c_str(), argv);
  fmt::print(stderr, "beeline-bench: cannot start {}: {}; tools/build builds it\n", program.string(),
             std::generic_category().message(errno));
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "collectives") return become_collectives(argv);
  return run_program({description, commands, primitive_cases, nvshmem::stop}, argc, argv);
}
