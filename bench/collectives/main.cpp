// SPDX-License-Identifier: Apache-2.0
/// @file
/// beeline-bench-collectives: the program that `beeline-bench collectives` executes.

#include "collectives/blocking.hpp"
#include "collectives/cases.hpp"
#include "collectives/in_python.hpp"
#include "harness/program.hpp"
#include "peers/mpi/mpi.hpp"
#include "peers/nvshmem/nvshmem.hpp"

namespace {

using namespace beeline::bench;

Measuring collectives_command() {
  using Type = CommandOption::Type;
  CommandOption blocks =
      integer_option("blocks", "Blocks of a call on a GPU: each is measured (default: by size)", 1, 1024);
  blocks.type = Type::integers;
  return {
      .command = Command::collectives,
      .summary = "Collectives by every algorithm, called in every way, beside NCCL, NVSHMEM, MPI and torch",
      .options = {{"sizes", Type::sizes, "Vector sizes (default: 8 to 1G on GPUs, to 1M on CPUs)"},
                  {"type", Type::name, "Type of the elements: float32 or bfloat16", "float32", {"float32", "bfloat16"}},
                  blocks},
      .operations = "allreduce"};
}

std::vector<Case> cases_of(Command command) {
  return command == Command::accuracy  ? accuracy_cases()
         : command == Command::overlap ? overlap_cases()
         : command == Command::calls   ? blocking_cases()
                                       : collective_cases();
}

constexpr const char* summary =
    "Measures Beeline's collectives among all ranks, beside the peers' in the same run.\n"
    "Prints JSON lines: one environment record, then progress and results. Times are in microseconds.\n"
    "Exit status 1 when a result was wrong.";

void stop_peers() {
  nvshmem::stop();
  mpi::stop();
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(
      {summary, {collectives_command(), accuracy_command(), overlap_command(), calls_command()}, cases_of, stop_peers},
      argc, argv);
}
