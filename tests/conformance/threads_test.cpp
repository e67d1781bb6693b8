// SPDX-License-Identifier: Apache-2.0
// The suite with ranks that are threads of one process.
#include "tests/conformance/suite.hpp"

int main(int argc, char** argv) {
  using namespace beeline_test;
  constexpr WorldKind threads = WorldKind::threads;
  return run_suite(argc, argv,
                   {{.kind = threads, .size = 1, .host_threads = 3, .same_threads = true},
                    {threads, 3, 2, Devices::cpu, false},
                    {.kind = threads, .size = 4, .same_threads = true},
                    {threads, 8, 1, Devices::cpu, true},
                    {.kind = threads, .size = 64, .crowd = true, .same_threads = true},
                    {threads, 1, 1, Devices::gpus, false},
                    {threads, 2, 1, Devices::one_gpu, false},
                    {threads, 4, 1, Devices::gpus, false},
                    {threads, 2, 1, Devices::cpus_and_a_gpu, false},
                    {threads, 4, 2, Devices::cpus_and_a_gpu, false},
                    {threads, 4, 1, Devices::cpus_and_two_gpus, false},
                    {threads, 3, 1, Devices::cpu, false, false},
                    {threads, 2, 1, Devices::gpus, false, false},
                    {.kind = threads, .size = 3, .host_threads = 2, .routed = true},
                    {.kind = threads, .size = 2, .devices = Devices::one_gpu, .routed = true},
                    {.kind = threads, .size = 3, .nodes = 3, .transports = "sockets:delay_us=50:reorder"},
                    {.kind = threads, .size = 2, .nodes = 2, .keyed = true},
                    {.kind = threads, .size = 2, .devices = Devices::one_gpu, .nodes = 2},
                    {.kind = threads, .size = 3, .devices = Devices::cpus_and_a_gpu, .nodes = 2}},
                   conformance_cases);
}
