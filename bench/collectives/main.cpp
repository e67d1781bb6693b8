// SPDX-License-Identifier: Apache-2.0
/// @file
/// beeline-bench-collectives: what `beeline-bench collectives` becomes.

#include "collectives/cases.hpp"
#include "harness/program.hpp"
#include "peers/mpi/mpi.hpp"
#include "peers/nvshmem/nvshmem.hpp"

namespace {

using namespace beeline::bench;

constexpr Measuring commands[] = {
    {Command::collectives, "collectives", "Collectives by every algorithm, called in every way, beside the peers",
     "Vector sizes (default: 8 to 1G on GPUs, to 1M on CPUs)", "allreduce"},
};

constexpr const char* description =
    "Measures Beeline's collectives among all ranks, beside the peers' in the same run.\n"
    "Prints JSON lines: one environment record, then progress and results. Times are in microseconds.\n"
    "Exit status 1 when a result was wrong.";

void stop_peers() {
  nvshmem::stop();
  mpi::stop();
}

}  // namespace

int main(int argc, char** argv) {
  return run_program({description, commands, [](Command) { return collective_cases(); }, stop_peers}, argc, argv);
}
